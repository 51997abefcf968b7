"""Operating-system processes that we started, known by pid *and* start time so that a recycled pid is never touched."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from signal import Signals

import psutil

from lockstep.errors import ClusterError, EnvironmentError_
from lockstep.recovery.ledger import Entry, Ledger
from lockstep.wait import wait_until

KIND = "process"
TOKEN = "LOCKSTEP_TOKEN"  # noqa: S105 - not a secret: it marks whose a process is
"""Environment variable with the ledger entry's own token: finds a process whose pid never made it into the ledger."""


def boot_id() -> str:
    """Which start of this machine this is; empty where it cannot be told."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def started(pid: int) -> float:
    """When a process started, in a unit that does not move with the wall clock; raises `psutil.NoSuchProcess`."""
    if sys.platform == "linux":
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            raise psutil.NoSuchProcess(pid) from None
        return float(stat.rpartition(")")[2].split()[19])  # field 22, in ticks since boot
    return psutil.Process(pid).create_time()


class OsProcess:
    """One process of ours: it can be signalled and waited for, and says honestly whether it is alive."""

    def __init__(self, *, name: str, pid: int, started_at: float, entry: Entry, child: subprocess.Popen[bytes] | None):
        self.name = name
        self.pid = pid
        self.started_at = started_at
        self._entry = entry
        self._child = child

    @classmethod
    def launch(
        cls, ledger: Ledger, *, name: str, argv: Sequence[str], log: Path, env: Mapping[str, str] | None = None
    ) -> OsProcess:
        """Start `argv` in a session of its own (Ctrl-C in the terminal must not reach it), output appended to `log`."""
        token = uuid.uuid4().hex
        entry = ledger.intent(KIND, name=name, token=token, host=socket.gethostname(), boot=boot_id())
        with log.open("ab") as output:
            try:
                child = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **(env or {}), TOKEN: token},
                    start_new_session=True,
                )
            except OSError as error:
                entry.failed(error=str(error))
                raise EnvironmentError_(f"cannot run {argv[0]}: {error.strerror}; see lockstep doctor") from error
        process = cls(name=name, pid=child.pid, started_at=started(child.pid), entry=entry, child=child)
        entry.effect(pid=process.pid, started=process.started_at)
        return process

    @property
    def identity(self) -> str:
        return f"pid {self.pid}"

    def alive(self) -> bool:
        """Whether the very process we started still runs (a zombie does not)."""
        if self._child is not None:
            return self._child.poll() is None
        try:
            return started(self.pid) == self.started_at and psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def paused(self) -> bool:
        try:
            return psutil.Process(self.pid).status() == psutil.STATUS_STOPPED
        except psutil.NoSuchProcess:
            return False

    def memory_mb(self) -> int | None:
        """Resident memory; None when it does not run."""
        try:
            return int(psutil.Process(self.pid).memory_info().rss) // 1_000_000 if self.alive() else None
        except psutil.NoSuchProcess:
            return None

    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while alive or when the process was not our child."""
        return self._child.poll() if self._child is not None else None

    def signal(self, number: Signals) -> None:
        if not self.alive():
            raise ClusterError(f"{self.name} ({self.identity}) is not running, so it cannot get {number.name}")
        os.kill(self.pid, number)

    def wait_exit(self, timeout_s: float) -> None:
        wait_until(lambda: not self.alive(), timeout_s=timeout_s, what=f"{self.name} ({self.identity}) to exit")
        self._entry.healed(exit_code=self.exit_code())

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone; one that is gone already is as good."""
        self._end(Signals.SIGKILL, timeout_s=10)

    def terminate(self, timeout_s: float) -> None:
        """SIGTERM, and wait until it has exited by itself."""
        self._end(Signals.SIGTERM, timeout_s)

    def _end(self, number: Signals, timeout_s: float) -> None:
        with suppress(ClusterError, ProcessLookupError):  # it may go by itself at any moment
            self.signal(number)
        self.wait_exit(timeout_s)

    def pause(self) -> None:
        self.signal(Signals.SIGSTOP)
        wait_until(self.paused, timeout_s=5, what=f"{self.name} to stop on SIGSTOP")

    def resume(self) -> None:
        self.signal(Signals.SIGCONT)
        wait_until(lambda: not self.paused(), timeout_s=5, what=f"{self.name} to go on after SIGCONT")


def processes_of(entry: Entry) -> list[OsProcess]:
    """What still runs of an entry: by pid and start time, or by token if its owner died before noting them."""
    name = entry.fields["name"]
    if entry.fields["host"] != socket.gethostname():
        raise EnvironmentError_(f"{name} was started on {entry.fields['host']}: run lockstep heal there")
    if entry.fields["boot"] != boot_id():
        return []  # the machine has been restarted since: the pid now belongs to a foreign process
    if "pid" in entry.fields:
        named = [(entry.fields["pid"], entry.fields["started"])]
    else:
        named = [(pid, started(pid)) for pid in _pids_with_token(entry.fields["token"])]
    found = [OsProcess(name=name, pid=pid, started_at=at, entry=entry, child=None) for pid, at in named]
    return [process for process in found if process.alive()]


def _pids_with_token(token: str) -> list[int]:
    pids = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(TOKEN) == token:
                pids.append(process.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return pids
