"""What a fault did to files is undone by `heal` from the ledger alone, once nobody uses the files."""

from __future__ import annotations

import sys
from pathlib import Path

from lockstep.heal import heal
from lockstep.recovery.ledger import LEDGER, Ledger, read_ledger
from lockstep.recovery.os_process import OsProcess
from lockstep.recovery.undo import RemoveDirectory, RestoreByte, relative


def test_files_become_what_the_ledger_says_and_healing_twice_is_harmless(tmp_path: Path) -> None:
    blocked, segment = tmp_path / "data" / "checkpoint.tmp", tmp_path / "data" / "0.log"
    blocked.mkdir(parents=True)
    segment.write_bytes(b"abXd")
    with Ledger(tmp_path) as ledger:
        ledger.intent("fault", undo=(RemoveDirectory(path=relative(blocked, ledger)),))
        ledger.intent(
            "fault",
            undo=(RestoreByte(path=relative(segment, ledger), position=2, original=ord("c"), changed=ord("X")),),
        )

    assert heal(tmp_path).removed == ("restored byte 2 of data/0.log", "removed data/checkpoint.tmp")

    assert segment.read_bytes() == b"abcd"
    assert not blocked.exists()
    assert heal(tmp_path).removed == ()


def test_what_is_not_as_the_fault_left_it_is_left_alone(tmp_path: Path) -> None:
    segment = tmp_path / "0.log"
    segment.write_bytes(b"new")
    with Ledger(tmp_path) as ledger:
        ledger.intent("fault", undo=(RestoreByte(path="0.log", position=1, original=1, changed=2),))
        ledger.intent("fault", undo=(RestoreByte(path="gone.log", position=1, original=1, changed=2),))
        ledger.intent("fault", undo=(RemoveDirectory(path="gone"),))

    healed = heal(tmp_path)

    assert healed.removed == healed.failed == ()
    assert segment.read_bytes() == b"new"
    assert not any(entry.open for entry in read_ledger(tmp_path / LEDGER))


def test_what_cannot_be_undone_stays_open_and_is_told(tmp_path: Path) -> None:
    (tmp_path / "full" / "of").mkdir(parents=True)
    with Ledger(tmp_path) as ledger:
        ledger.intent("fault", fault="log-dir-failure", undo=(RemoveDirectory(path="full"),))

    assert "log-dir-failure" in heal(tmp_path).failed[0]

    (entry,) = read_ledger(tmp_path / LEDGER)
    assert entry.open


def test_files_wait_for_the_process_that_uses_them(tmp_path: Path) -> None:
    """Older entries are healed later, but what runs is ended before a newer fault's files are touched."""
    (tmp_path / "blocked").mkdir()
    with Ledger(tmp_path) as ledger:
        argv = [sys.executable, "-c", "import time; time.sleep(600)"]
        process = OsProcess.launch(ledger, name="broker-1", argv=argv, log=tmp_path / "log")
        ledger.intent("fault", undo=(RemoveDirectory(path="blocked"),))

    removed = heal(tmp_path).removed

    assert not process.alive()
    assert [words.split()[0] for words in removed] == ["broker-1", "removed"]
