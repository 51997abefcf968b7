from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.recovery.ledger import LEDGER, Ledger, LedgerBusy, read_ledger


def test_the_intent_is_on_disk_before_the_act(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.intent("process", name="broker-1", token="t")
        (entry,) = read_ledger(tmp_path / LEDGER)
    assert entry.open
    assert entry.fields == {"name": "broker-1", "token": "t"}


def test_later_phases_add_fields_and_healed_closes(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        entry = ledger.intent("process", name="broker-1")
        entry.effect(pid=7)
        assert [e.number for e in ledger.open_entries()] == [1]
        entry.healed(exit_code=-9)
        assert not list(ledger.open_entries())
    (read,) = read_ledger(tmp_path / LEDGER)
    assert not read.open
    assert read.fields == {"name": "broker-1", "pid": 7, "exit_code": -9}
    assert read.phase("effect") == {"pid": 7}
    assert read.phase("proof") is None


def test_a_living_owner_keeps_others_out(tmp_path: Path) -> None:
    with Ledger(tmp_path), pytest.raises(LedgerBusy, match="still going on"):
        Ledger(tmp_path)


def test_a_new_owner_finds_what_is_open_newest_first(tmp_path: Path) -> None:
    with Ledger(tmp_path) as first:
        first.intent("process", name="old")
        first.intent("process", name="gone").healed()
        first.intent("process", name="new")
    with Ledger(tmp_path) as second:
        assert [entry.fields["name"] for entry in second.open_entries()] == ["new", "old"]
        next(second.open_entries()).healed()
        assert second.intent("fault").number == 4
    assert [entry.open for entry in read_ledger(tmp_path / LEDGER)] == [True, False, False, True]


def test_a_torn_last_line_is_dropped(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.intent("process", name="broker-1")
    with (tmp_path / LEDGER).open("ab") as file:
        file.write(b'{"entry":2,"kind":"proc')
    assert [entry.number for entry in read_ledger(tmp_path / LEDGER)] == [1]


def test_nothing_is_glued_to_a_torn_line(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.intent("process", name="broker-1")
    with (tmp_path / LEDGER).open("ab") as file:
        file.write(b'{"entry":2,"kind":"proc')
    with Ledger(tmp_path) as second:
        second.intent("process", name="broker-2")
    assert [entry.fields["name"] for entry in read_ledger(tmp_path / LEDGER)] == ["broker-1", "broker-2"]
