"""What the report of a walk says, and that it keeps to itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import msgspec
import pytest
from playwright.sync_api import Browser

import lockstep_reports as reports
from lockstep.cli.main import run_cli
from lockstep.errors import ExitCode, HistoryError, UsageError
from lockstep_reports.walk import SHOWN_STEPS, load_walk
from tests.reports import sample_walks
from tests.reports.browser import watched
from tests.reports.html_document import Element, read, section
from tests.reports.sample_runs import HOSTILE
from tests.reports.test_report_browser import CONTRAST

RUN = "20261116T080000Z-step-7"
BUILDERS: dict[str, Callable[[Path], Path]] = {
    "pass": sample_walks.pass_walk,
    "violation": sample_walks.diverged_walk,
    "undecided": sample_walks.undecided_walk,
    "hostile": sample_walks.hostile_walk,
    "retraced": sample_walks.retraced_walk,
    "permitted": sample_walks.permitted_walk,
}


@pytest.fixture(params=sorted(BUILDERS))
def any_walk(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return BUILDERS[request.param](tmp_path / RUN)


def rendered(walk: Path) -> Element:
    return read(reports.render_walk(walk))


def rows(place: Element) -> list[str]:
    return [row.text for body in place.find("tbody") for row in body.find("tr")]


@pytest.mark.parametrize(
    ("builder", "word", "why"),
    [
        ("pass", "Pass", "In 4 steps the model explains everything that the cluster answered and decided; never by "
         "more than 247 states. 2 of 3 wrong models could not explain it."),
        ("violation", "Divergence", "At step 5 the cluster did what no state of the model permits."),
        ("undecided", "Undecided", "After 4 steps the model could not be followed any further: more than 20000 states "
         "explain it."),
    ],
)  # fmt: skip
def test_the_verdict_comes_first(tmp_path: Path, builder: str, word: str, why: str) -> None:
    (block,) = rendered(BUILDERS[builder](tmp_path / RUN)).find("div", "verdict")
    assert block.find("h1")[0].text == word
    assert block.find("p", "why")[0].text == why
    assert block.classes == {"verdict", builder}


@pytest.mark.parametrize("builder", ["pass", "violation", "undecided", "retraced", "permitted"])
def test_all_that_the_harness_writes_is_read(tmp_path: Path, builder: str) -> None:
    """The report has types of its own, since it may not know the harness: they must not leave anything out."""
    walk = BUILDERS[builder](tmp_path / RUN)
    loaded = load_walk(walk)
    assert msgspec.to_builtins(loaded.verdict) == msgspec.json.decode((walk / "verdict.json").read_bytes())
    assert msgspec.json.encode(loaded.steps) == msgspec.json.encode(sample_walks.LINES)


def test_a_divergence_tells_what_was_seen_permitted_and_believed(tmp_path: Path) -> None:
    told = section(rendered(sample_walks.diverged_walk(tmp_path / RUN)), "divergence")
    (facts,) = told.find("dl", "divergence")
    assert facts.text == (
        "step 5ask 2 for its log end seenoffset 1 of epoch 0 permittedoffset 2 of epoch 0NOT_LEADER_OR_FOLLOWER "
        "decided beforeleader 3 in epoch 2, ISR [3], partition epoch 2"
    )
    (belief,) = told.find("table", "belief")
    assert rows(belief) == [
        "broker 1 does not run; on its disk log 0 to 2",
        "broker 2 leads in epoch 1 in 2 of 3 states follows 1 in 1 of 3 states",
        "broker 3 follows 2 in epoch 1 and 4 more",
    ]
    assert [item.text for item in told.find("ol")[0].find("li")] == ["kill 1", "ask 2 for its log end"]
    (steps,) = told.find("table", "steps")
    assert [row.split(" ")[0][0] for row in rows(steps)] == ["1", "2", "3", "4", "5"]
    assert sample_walks.DECISION in steps.text
    logs = [details.text for details in told.find("details")][-2:]
    assert logs == ["broker-1: nothing", "broker-2: 2 lines, 7 before them left out line one line two"]


def test_wrong_models_are_told_by_when_they_diverged(tmp_path: Path) -> None:
    controls = rows(section(rendered(sample_walks.pass_walk(tmp_path / RUN)), "controls"))
    assert controls == [
        "earlya write with acks=1 waits for the ISR13written at 0",
        "latenothing of interest49OFFSET_OUT_OF_RANGE",
        "elect-anyonea leader need not be in syncnot in this walk",
    ]


def test_coverage_tells_answers_causes_and_pairs(tmp_path: Path) -> None:
    coverage = section(rendered(sample_walks.pass_walk(tmp_path / RUN)), "coverage")
    answers, causes, pairs = coverage.find("table")
    assert "write with acks=11answered 1" in rows(answers)
    assert rows(causes) == ["a session ended11"]
    assert "3 of 16 pairs of these kinds were taken" in coverage.text
    assert sum(cell.text == "1" for row in pairs.find("tbody")[0].find("tr") for cell in row.find("td")[1:]) == 3


def test_every_step_is_in_the_table_up_to_a_limit(tmp_path: Path) -> None:
    walk = sample_walks.pass_walk(tmp_path / RUN)
    assert len(rows(section(rendered(walk), "steps"))) == 4
    (walk / "steps.jsonl").write_bytes((walk / "steps.jsonl").read_bytes() * 300)
    steps = section(rendered(walk), "steps")
    assert len(rows(steps)) == SHOWN_STEPS
    assert "The first 200 are only in steps.jsonl." in steps.text
    assert (walk / "report.html").stat().st_size < 1_000_000


def test_a_torn_line_is_left_out_with_a_note(tmp_path: Path) -> None:
    walk = sample_walks.pass_walk(tmp_path / RUN)
    with (walk / "steps.jsonl").open("ab") as file:
        file.write(b'{"step": "read fr')
    page = rendered(walk)
    assert "steps.jsonl has 1 unreadable line(s), which are left out." in page.find("ul", "notes")[0].text
    assert len(rows(section(page, "steps"))) == 4


def test_a_walk_without_steps_or_run_json_still_has_a_page(tmp_path: Path) -> None:
    walk = sample_walks.undecided_walk(tmp_path / RUN)
    (walk / "steps.jsonl").write_bytes(b"")
    (walk / "run.json").unlink()
    page = rendered(walk)
    assert not page.find("svg", "timeline")
    assert "This run has no run.json" in page.find("ul", "notes")[0].text


def test_without_a_verdict_the_command_to_take_it_again_is_told(tmp_path: Path) -> None:
    walk = sample_walks.pass_walk(tmp_path / RUN)
    (walk / "verdict.json").unlink()
    with pytest.raises(UsageError, match=f"did not come to a verdict: take it again with `{sample_walks.COMMAND}`"):
        reports.render_walk(walk)
    (walk / "verdict.json").write_text("{")
    with pytest.raises(HistoryError, match=f"verdict.json of {RUN} cannot be read"):
        reports.render_walk(walk)


def test_commands_about_runs_know_a_walk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    walk = sample_walks.pass_walk(tmp_path / RUN)
    assert run_cli(["report", str(walk)]) == ExitCode.PASS
    assert capsys.readouterr().out == f"{walk / 'report.html'}\n"
    for command in ("check", "replay"):
        assert run_cli([command, str(walk)]) == ExitCode.USAGE
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err == (
            f"lockstep: {RUN} is a walk, without a plan and without a history: its verdict is in its report.html, and "
            f"`{sample_walks.COMMAND}` takes it again\n"
        )


def test_a_counterexample_is_told_beside_what_the_cluster_did(tmp_path: Path) -> None:
    walk = sample_walks.retraced_walk(tmp_path / RUN / "traces" / "kip101")
    page = rendered(walk)
    (why,) = page.find("p", "why")
    assert why.text == "The bad turn of kip101, which breaks strong-isr, was not taken."
    told = section(page, "trace")
    assert "0 is 1, 1 is 2, 2 is 3" in told.text
    assert "A model without fetch-leader-epoch, told the same: explains it too." in told.text
    (row,) = rows(told)
    assert "2 fetches from 0" in row
    assert "FENCED_LEADER_EPOCH" in row
    assert reports.write_all(walk) == (walk / "report.html",)


def test_a_bad_turn_that_is_known_is_permitted(tmp_path: Path) -> None:
    page = rendered(sample_walks.permitted_walk(tmp_path / RUN / "traces" / "kip320.hw-epoch"))
    assert page.find("h1")[0].text == "Permitted"
    assert page.find("p", "why")[0].text == (
        "The bad turn of kip320:hw-epoch, which breaks strong-isr, was taken: leader-candidate-completeness: 2 lacks a "
        "record. Permitted: that is known (docs/findings.md: what is known)."
    )


def test_hostile_contents_stay_text(tmp_path: Path) -> None:
    path = reports.render_walk(sample_walks.hostile_walk(tmp_path / RUN))
    page = read(path)
    assert len(page.find("script")) == 1
    assert not page.find("img")
    for name in ("divergence", "walk", "controls", "coverage", "steps", "reproduce", "environment"):
        assert HOSTILE in section(page, name).text, name
    text = path.read_text()
    assert "<script>alert" not in text
    assert "\u202e" not in text
    assert "x" * 3000 not in text
    assert "49" not in section(page, "divergence").find("dl")[0].text  # {{7*7}}


def test_every_picture_is_well_formed_and_described(any_walk: Path) -> None:
    text = reports.render_walk(any_walk).read_text()
    pictures = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]
    (drawn,) = [svg for svg in pictures if svg.get("role") == "img"]
    assert "4 steps" in (drawn.findtext("desc") or "")
    for element in drawn.iter():
        assert "nan" not in str(element.attrib)
        assert "inf" not in str(element.attrib)


def test_it_runs_clean_asks_for_nothing_and_fits_a_phone(browser: Browser, any_walk: Path) -> None:
    path = reports.render_walk(any_walk)
    page = browser.new_page(viewport={"width": 400, "height": 800})
    said, asked = watched(page)
    page.goto(path.as_uri())
    for width in (400, 1200):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert said == []
    assert asked == [path.as_uri()]
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_background(
    browser: Browser, tmp_path: Path, scheme: Literal["light", "dark"]
) -> None:
    page = browser.new_context(color_scheme=scheme).new_page()
    page.goto(reports.render_walk(sample_walks.diverged_walk(tmp_path / RUN)).as_uri())
    for selector in (".verdict h1", ".divergence .alert dd", ".belief small", ".decided", ".steps .violated th"):
        assert page.locator(selector).first.evaluate(CONTRAST) >= 4.5, selector
    page.context.close()
