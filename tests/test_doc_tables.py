"""The tables of `docs/lockstep.md` have the names and words that the tool prints."""

from __future__ import annotations

import re
from pathlib import Path

from lockstep.exploration.ours import REPLICATION
from lockstep.stepper.conformance import find_scripts
from lockstep.stepper.controls.wrong_models import WRONG_MODELS
from lockstep.stepper.retrace.traces import PUBLISHED, names

PAGE = (Path(__file__).parent.parent / "docs" / "lockstep.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The rows of the table whose heading begins so."""
    (table,) = re.findall(rf"^\| {heading} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]


def test_scripts_are_listed_in_their_order_with_what_they_show() -> None:
    scripts = [[", ".join(map(str, script.claims)), script.name, script.shows] for script in find_scripts()]
    assert rows("claims") == scripts


def test_every_wrong_model_is_in_the_table_or_among_the_others() -> None:
    (others,) = re.findall(r"^The other six .*?:(.*?)`elr`", PAGE, re.MULTILINE | re.DOTALL)
    listed = [name for name, *_ in rows("wrong model")]
    unreached: list[str] = re.findall(r"`([a-z-]+)`", others)
    assert len(unreached) == 6
    assert sorted(listed + unreached) == sorted(wrong.name for wrong in WRONG_MODELS)


def test_every_counterexample_is_listed_with_the_invariants_that_it_breaks() -> None:
    breaks: dict[str, set[str]] = {}
    for names_, broken, *_ in rows("counterexample"):
        for name in names_.split(", "):
            breaks.setdefault(name.partition(" ")[0], set()).update(broken.split(", "))
    (skipped,) = re.findall(r"^Not replayed: .*?\((.*?)\)", PAGE, re.MULTILINE | re.DOTALL)
    unlisted = {name.partition(":")[2] for name in re.findall(r"`([^`]+)`", skipped)}
    assert set(breaks) | unlisted == {name if name in PUBLISHED else name.partition(":")[2] for name in names()}
    for specification in REPLICATION:
        for mutant, shown in specification.mutants.items():
            assert mutant in unlisted or shown.breaks in breaks[mutant]
