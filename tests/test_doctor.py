from __future__ import annotations

from pathlib import Path

import pytest

from lockstep import doctor
from lockstep.doctor import ITEMS, Check, Item, Subject
from lockstep.errors import EnvironmentError_, UsageError
from lockstep.host.cache import CACHE_VARIABLE
from lockstep.progress import Progress

QUIET = Progress(quiet=True)


def _absent(_: Subject) -> str:
    raise EnvironmentError_("it is not there: fetch it")


def test_this_machine_after_set_up_can_run_everything_required(tmp_path: Path) -> None:
    checks = doctor.diagnose(tmp_path)
    assert [check.name for check in checks] == [item.name for item in ITEMS]
    assert [check for check in checks if check.required and not check.ok] == []
    assert doctor.healthy(checks)


def test_an_empty_cache_is_found_out_without_filling_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {check.name: check for check in doctor.diagnose(tmp_path)}
    for name in ("kafka", "archive", "toxiproxy"):
        assert not found[name].ok
        assert found[name].fix
    assert found["kafka"].fix == "lockstep doctor --fix"
    assert not (tmp_path / "cache").exists()


def test_a_problem_and_its_fix_are_told_apart() -> None:
    (check,) = doctor.diagnose(items=[Item(name="thing", examine=_absent)])
    assert check == Check(name="thing", required=True, ok=False, detail="it is not there", fix="fetch it")


@pytest.mark.parametrize("required", [True, False])
def test_only_what_is_required_makes_a_machine_unfit(required: bool) -> None:
    checks = doctor.diagnose(items=[Item(name="thing", required=required, examine=_absent)])
    assert doctor.healthy(checks) is not required


def test_fixing_repairs_what_is_ill_and_leaves_the_rest_alone(tmp_path: Path) -> None:
    place = tmp_path / "thing"

    def examine(_: Subject) -> str:
        if not place.exists():
            raise EnvironmentError_("it is not there: fetch it")
        return "there"

    def unwanted(_: Subject, __: Progress) -> None:
        raise AssertionError("what is well needs no repair")

    items = [
        Item(name="thing", examine=examine, repair=lambda _, __: place.touch()),
        Item(name="other", examine=lambda _: "well", repair=unwanted),
    ]
    assert [check.detail for check in doctor.fix(QUIET, items=items)] == ["there", "well"]


def test_a_repair_that_fails_says_why_and_the_next_is_still_done(tmp_path: Path) -> None:
    def refuse(_: Subject, __: Progress) -> None:
        raise EnvironmentError_("no network: plug it in")

    items = [
        Item(name="first", examine=_absent, repair=refuse),
        Item(name="second", examine=_absent, repair=lambda _, __: (tmp_path / "done").touch()),
    ]
    first, _ = doctor.fix(QUIET, items=items)
    assert (first.ok, first.detail, first.fix) == (False, "no network", "plug it in")
    assert (tmp_path / "done").exists()


def test_a_full_disk_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockstep.rundir.NEEDED_BYTES", 10**18)
    (check,) = doctor.diagnose(tmp_path / "runs", items=[item for item in ITEMS if item.name == "disk"])
    assert not check.ok
    assert str(tmp_path) in check.detail


def test_an_unknown_version_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match=r"did you mean 4\.3\.1"):
        doctor.diagnose(kafka="4.3.12")
    with pytest.raises(UsageError, match=r"did you mean 4\.3\.1"):
        doctor.fix(QUIET, kafka="4.3.12")
