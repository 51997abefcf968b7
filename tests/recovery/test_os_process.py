"""Processes are known by pid and start time, and nothing else is ever touched."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep.errors import ClusterError, EnvironmentError_
from lockstep.heal import Healed, heal, owning
from lockstep.recovery.ledger import LEDGER, Ledger, read_ledger
from lockstep.recovery.os_process import TOKEN, OsProcess, boot_id, processes_of, started
from lockstep.rundir import registered_directories


@pytest.fixture(autouse=True)
def _own_register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters that other tests of this worker keep open are registered too."""
    monkeypatch.setenv("LOCKSTEP_STATE", str(tmp_path / "state"))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path) as opened:
        yield opened


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is not ours to touch."""
    with subprocess.Popen(["sleep", "600"], env=os.environ | {TOKEN: "somebody-else's"}) as process:
        yield process
        process.kill()


HERE = {"host": socket.gethostname(), "boot": boot_id()}


def sleeper(ledger: Ledger) -> OsProcess:
    return OsProcess.launch(ledger, name="sleeper", argv=["sleep", "600"], log=ledger.path.with_name("log"))


def test_pause_resume_kill(ledger: Ledger) -> None:
    process = sleeper(ledger)
    assert process.alive()
    process.pause()
    assert process.paused()
    process.resume()
    assert not process.paused()
    process.kill()
    assert not process.alive()
    assert process.exit_code() == -signal.SIGKILL
    with pytest.raises(ClusterError, match="is not running"):
        process.pause()


def test_a_program_that_is_not_there(ledger: Ledger) -> None:
    with pytest.raises(EnvironmentError_, match="cannot run /no/such/java"):
        OsProcess.launch(ledger, name="x", argv=["/no/such/java"], log=ledger.path.with_name("log"))
    assert not list(ledger.open_entries())


def test_heal_kills_what_the_ledger_names_and_closes_it(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        process = sleeper(ledger)
    healed = heal(tmp_path)
    assert healed.removed == (f"sleeper (pid {process.pid})",)
    assert not process.alive()
    assert not any(entry.open for entry in read_ledger(tmp_path / LEDGER))
    assert heal(tmp_path).removed == ()


def test_heal_finds_a_process_whose_pid_was_never_written(tmp_path: Path) -> None:
    """The owner died between starting the process and noting its pid: the token is how it is found."""
    with Ledger(tmp_path) as ledger:
        ledger.intent("process", name="orphan", token="only-this-one", **HERE)
    with subprocess.Popen(["sleep", "600"], env=os.environ | {TOKEN: "only-this-one"}) as orphan:
        assert heal(tmp_path).removed == (f"orphan (pid {orphan.pid})",)
        assert orphan.wait(10) == -signal.SIGKILL


def test_a_recycled_pid_is_not_touched(tmp_path: Path, bystander: subprocess.Popen[bytes]) -> None:
    with Ledger(tmp_path) as ledger:
        entry = ledger.intent("process", name="broker-1", token="ours", **HERE)
        entry.effect(pid=bystander.pid, started=started(bystander.pid) - 1)
        assert processes_of(entry) == []
    assert heal(tmp_path).removed == ()
    assert bystander.poll() is None


def test_somebody_elses_token_is_not_touched(tmp_path: Path, bystander: subprocess.Popen[bytes]) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.intent("process", name="broker-1", token="ours", **HERE)
    assert heal(tmp_path).removed == ()
    assert bystander.poll() is None


def test_heal_leaves_a_run_with_a_living_owner_alone(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        process = sleeper(ledger)
        assert heal(tmp_path).busy
        assert process.alive()
        process.kill()


def test_a_restart_of_the_machine_makes_every_pid_somebody_elses(
    tmp_path: Path, bystander: subprocess.Popen[bytes]
) -> None:
    with Ledger(tmp_path) as ledger:
        entry = ledger.intent("process", name="broker-1", token="ours", **(HERE | {"boot": "an earlier one"}))
        entry.effect(pid=bystander.pid, started=started(bystander.pid))
    assert heal(tmp_path).removed == ()
    assert bystander.poll() is None


def test_another_machine_is_left_to_heal_itself(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.intent("process", name="broker-1", token="ours", **(HERE | {"host": "elsewhere"}))
    assert heal(tmp_path).failed == ("broker-1 (broker-1 was started on elsewhere: run lockstep heal there)",)
    assert [entry.open for entry in read_ledger(tmp_path / LEDGER)] == [True]


def test_one_that_cannot_be_healed_does_not_keep_the_others_alive(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        process = sleeper(ledger)
        ledger.intent("process", name="broker-1", token="ours", **(HERE | {"host": "elsewhere"}))
    healed = heal(tmp_path)
    assert healed.removed == (f"sleeper (pid {process.pid})",)
    assert len(healed.failed) == 1
    assert not process.alive()


def test_killing_what_is_already_gone_is_no_error(ledger: Ledger) -> None:
    process = sleeper(ledger)
    os.kill(process.pid, signal.SIGKILL)
    process.kill()
    assert not process.alive()


def started_in_a_block_that_fails(directory: Path, *, keep: bool) -> OsProcess:
    try:
        with owning(directory, keep=keep) as ledger:
            process = sleeper(ledger)
            raise ZeroDivisionError  # noqa: TRY301 - the block is to fail
    except ZeroDivisionError:
        return process


def test_a_block_that_fails_leaves_nothing_of_what_it_started(tmp_path: Path) -> None:
    process = started_in_a_block_that_fails(tmp_path, keep=False)
    assert not process.alive()
    assert registered_directories() == []


def test_a_block_that_fails_says_what_is_left(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError) as failed, owning(tmp_path) as ledger:  # noqa: PT012 - the block is to fail
        ledger.intent("process", name="broker-1", token="ours", **(HERE | {"host": "elsewhere"}))
        raise ZeroDivisionError
    assert failed.value.__notes__ == [
        "could not remove broker-1 (broker-1 was started on elsewhere: run lockstep heal there): try lockstep heal"
    ]
    assert registered_directories() == [tmp_path]
    heal(tmp_path, forget=True)


def test_what_nobody_thought_of_does_not_keep_the_others_alive(tmp_path: Path) -> None:
    """A ledger of another version of Lockstep may name what this one has never heard of."""
    with Ledger(tmp_path) as ledger:
        process = sleeper(ledger)
        ledger.intent("satellite", name="sputnik")
    healed = heal(tmp_path)
    assert healed.removed == (f"sleeper (pid {process.pid})",)
    assert healed.failed == ("sputnik (unexpected KeyError('satellite'))",)
    assert not process.alive()


def test_what_cannot_be_removed_can_be_forgotten(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        process = sleeper(ledger)
        ledger.intent("process", name="broker-1", token="ours", **(HERE | {"host": "elsewhere"}))
    healed = heal(tmp_path, forget=True)
    assert healed.removed == (f"sleeper (pid {process.pid})",), "what can be removed is not forgotten"
    assert healed.forgotten == ("broker-1 (broker-1 was started on elsewhere: run lockstep heal there)",)
    assert healed.failed == ()
    assert not process.alive()
    assert not any(entry.open for entry in read_ledger(tmp_path / LEDGER))
    assert heal(tmp_path) == Healed(directory=tmp_path)


def test_what_is_to_be_kept_is_kept_unless_the_block_fails(tmp_path: Path) -> None:
    with owning(tmp_path / "well", keep=True) as ledger:
        kept = sleeper(ledger)
    assert kept.alive()
    assert registered_directories() == []
    assert heal(tmp_path / "well").removed == (f"sleeper (pid {kept.pid})",)
    assert not kept.alive()
    assert not started_in_a_block_that_fails(tmp_path / "badly", keep=True).alive()
