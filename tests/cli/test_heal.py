"""What cannot be cleaned up is said, tried again, and in the end forgotten if one wants."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from lockstep.cli.main import lockstep, run_cli
from lockstep.errors import ClusterError
from lockstep.heal import heal, owning
from lockstep.recovery.ledger import Ledger
from lockstep.rundir import registered

ENVIRONMENT, INTERRUPTED = 3, 130
NOBODY = "127.0.0.1:1"

LEFT = f"could not remove orders (no Kafka answers at {NOBODY}: "
AGAIN = ": try lockstep heal\n"


def out_of_reach(ledger: Ledger) -> None:
    """A topic on a cluster that is gone."""
    ledger.intent("topic", name="orders", bootstrap_servers=NOBODY, client_config=None)


def added(monkeypatch: pytest.MonkeyPatch, directory: Path, error: BaseException, *, reachable: bool) -> None:
    """A command `fail` that ends with an error when it has made something."""

    @click.command()
    def fail() -> None:
        with owning(directory) as ledger:
            if not reachable:
                out_of_reach(ledger)
            raise error

    monkeypatch.setitem(lockstep.commands, "fail", fail)


def test_an_interrupt_that_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    added(monkeypatch, tmp_path, KeyboardInterrupt(), reachable=True)
    assert run_cli(["fail"]) == INTERRUPTED
    assert capsys.readouterr().err == "lockstep: interrupted; everything that was started has been removed\n"


def test_an_interrupt_that_leaves_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    added(monkeypatch, tmp_path, KeyboardInterrupt(), reachable=False)
    assert run_cli(["fail"]) == INTERRUPTED
    said = capsys.readouterr().err
    assert said.startswith(f"lockstep: interrupted; {LEFT}")
    assert said.endswith(AGAIN)
    heal(tmp_path, forget=True)


@pytest.mark.parametrize("error", [ClusterError("broker-1 is gone"), ZeroDivisionError("broker-1 is gone")])
def test_an_error_that_leaves_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    added(monkeypatch, tmp_path, error, reachable=False)
    assert run_cli(["fail"]) == ENVIRONMENT
    *_, first, second = capsys.readouterr().err.splitlines(keepends=True)
    assert "broker-1 is gone" in first
    assert second.startswith(f"lockstep: {LEFT}")
    assert second.endswith(AGAIN)
    heal(tmp_path, forget=True)


def test_what_is_out_of_reach_for_ever_can_be_forgotten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Ledger(tmp_path) as ledger, registered(tmp_path):
        out_of_reach(ledger)
    assert run_cli(["heal"]) == ENVIRONMENT
    said = capsys.readouterr().out
    assert f"{tmp_path}: removed nothing; {LEFT}" in said
    assert "or give it up with lockstep heal --forget" in said
    assert run_cli(["heal", "--forget"]) == 0
    assert f"{tmp_path}: removed nothing; forgot, and may have left, orders (no Kafka" in capsys.readouterr().out
    assert run_cli(["heal", "--json"]) == 0
    assert str(tmp_path) not in [one["run"] for one in json.loads(capsys.readouterr().out)]


def test_a_client_config_that_was_removed_can_be_forgotten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Ledger(tmp_path) as ledger, registered(tmp_path):
        ledger.intent("topic", name="orders", bootstrap_servers=NOBODY, client_config=str(tmp_path / "gone"))
    assert run_cli(["heal"]) == ENVIRONMENT
    assert "could not remove orders (client properties cannot be read from " in capsys.readouterr().out
    assert run_cli(["heal", "--forget", "--json"]) == 0
    (forgotten,) = (one for one in json.loads(capsys.readouterr().out) if one["run"] == str(tmp_path))
    assert (forgotten["removed"], forgotten["failed"], len(forgotten["forgotten"])) == ([], [], 1)


def test_help_names_all_that_is_removed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["heal", "--help"]) == 0
    said = capsys.readouterr().out
    for kind in ("processes", "containers", "networks", "secrets", "topics", "--forget"):
        assert kind in said
