"""SIGKILL the harness at different moments of a run; `lockstep heal` must leave nothing of it alive."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest

from lockstep.recovery.ledger import LEDGER, Entry, read_ledger
from lockstep.recovery.os_process import TOKEN
from lockstep.wait import wait_until
from tests.command import LOCKSTEP, Lockstep

pytestmark = pytest.mark.cluster

Moment = Callable[[list[Entry], list[str]], bool]


def noted(entries: list[Entry]) -> int:
    return sum(entry.kind == "process" and entry.phase("effect") is not None for entry in entries)


MOMENTS: dict[str, Moment] = {
    "the proxies have just started": lambda entries, _: noted(entries) == 1,
    "brokers are starting": lambda entries, _: noted(entries) >= 4,
    "clients are at work": lambda _, phases: "load" in phases,
    "the leader is dead": lambda entries, _: any(e.kind == "fault" and e.phase("effect") for e in entries),
    "everything is read to its end": lambda _, phases: "final-read" in phases,
}


IN_EVERY_RUN = ("the leader is dead",)


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(moment, id=name, marks=() if name in IN_EVERY_RUN else pytest.mark.long)
        for name, moment in MOMENTS.items()
    ],
)
def test_nothing_of_the_run_is_left(moment: Moment, tmp_path: Path, lockstep: Lockstep) -> None:
    environment = {"LOCKSTEP_STATE": str(tmp_path / "state")}
    with subprocess.Popen(
        [LOCKSTEP, "run", "leader-kill", "--for", "3s"],
        cwd=tmp_path,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as harness:
        try:
            wait_until(
                lambda: harness.poll() is not None or reached(moment, tmp_path),
                timeout_s=180,
                what="the moment",
                interval_s=0.02,
            )
            assert harness.poll() is None, harness.stdout.read() if harness.stdout else ""
            family = psutil.Process(harness.pid).children(recursive=True)
        finally:
            harness.kill()
    (run,) = tmp_path.glob("runs/*-leader-kill-*")
    tokens = {entry.fields["token"] for entry in read_ledger(run / LEDGER) if entry.kind == "process"}
    assert survivors(tokens), "the harness took its cluster with it: there was nothing to heal"

    healed = lockstep("heal", env=environment)

    assert healed.returncode == 0, healed.stderr
    assert "removed" in healed.stdout
    assert survivors(tokens) == []
    wait_until(lambda: not [p for p in family if running(p)], timeout_s=60, what="Spark to notice and go")
    assert not any(entry.open for entry in read_ledger(run / LEDGER))
    assert lockstep("heal", env=environment).stdout == "nothing to heal\n"


def reached(moment: Moment, directory: Path) -> bool:
    for run in directory.glob("runs/*-leader-kill-*"):
        if (run / LEDGER).exists() and (run / "run.json").exists():
            phases = [phase["name"] for phase in msgspec.json.decode((run / "run.json").read_bytes())["phases"]]
            return moment(read_ledger(run / LEDGER), phases)
    return False


def survivors(tokens: set[str]) -> list[str]:
    alive = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(TOKEN) in tokens and running(process):
                alive.append(f"{process.pid} {process.name()}")
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return alive


def running(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
