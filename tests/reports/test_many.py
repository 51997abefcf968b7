"""What the reports of many walks, scripts and counterexamples say to people and to CI, and keep to themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import msgspec
import pytest
from playwright.sync_api import Browser

import lockstep_reports as reports
from lockstep.cli.main import run_cli
from lockstep.errors import ExitCode, UsageError
from lockstep_reports.conformance import SCRIPTS, claims_of
from lockstep_reports.retrace import COUNTEREXAMPLES
from lockstep_reports.walks import WALKS
from tests.reports import sample_many
from tests.reports.browser import watched
from tests.reports.html_document import Element, read, section
from tests.reports.sample_runs import HOSTILE
from tests.reports.test_report_browser import CONTRAST
from tests.reports.test_report_ci import outcomes
from tests.reports.test_walk import rows

RUN = "20261116T080000Z-step-3"
SKIPPED = {"kraft-3.9:fetch-broker-epoch": "skipped"}
BUILDERS: dict[str, Callable[[Path], Path]] = {
    "pass walks": sample_many.pass_walks,
    "violation walks": sample_many.diverged_walks,
    "undecided walks": sample_many.undecided_walks,
    "hostile walks": sample_many.hostile_walks,
    "pass conformance": sample_many.pass_conformance,
    "violation conformance": sample_many.violated_conformance,
    "undecided conformance": sample_many.undecided_conformance,
    "hostile conformance": sample_many.hostile_conformance,
    "pass retrace": sample_many.pass_retrace,
    "violation retrace": sample_many.violation_retrace,
    "undecided retrace": sample_many.undecided_retrace,
    "hostile retrace": sample_many.hostile_retrace,
}


@pytest.fixture(params=sorted(BUILDERS))
def any_run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return BUILDERS[request.param](tmp_path / RUN)


def rendered(run: Path) -> Element:
    page, *_ = reports.write_all(run)
    return read(page)


def cases(run: Path) -> dict[str, str]:
    _, junit, *_ = reports.write_all(run)
    return outcomes(ElementTree.parse(junit).getroot())


@pytest.mark.parametrize(
    ("builder", "word", "why"),
    [
        ("pass walks", "Pass", "In 8 steps of 2 walks the model explains everything that the cluster answered and "
         "decided. 1 of 2 wrong models could not explain them."),
        ("violation walks", "Divergence", "With seed 5 the cluster did what no state of the model permits; 8 steps of "
         "2 walks were taken."),
        ("undecided walks", "Undecided", "With seed 3 the model could not be followed to the end; 8 steps of 2 walks "
         "were taken."),
        ("pass conformance", "Pass", "2 claims about Kafka hold on Kafka 3.9.2 (zk): 2 scripts have shown it."),
        ("violation conformance", "Violation", "Claim 34 does not hold on Kafka 3.9.2 (zk)."),
        ("undecided conformance", "Undecided", "Claim 34 is undecided on Kafka 3.9.2 (zk): what it is about was not "
         "reached."),
        ("pass retrace", "Pass", "Of 2 counterexamples Kafka 3.9.2 (zk) took the bad turn of kip320:hw-epoch only, "
         "which is known."),
        ("violation retrace", "Violation", "Kafka 3.9.2 (zk) took the bad turn of kip279."),
        ("undecided retrace", "Undecided", "Kafka 3.9.2 (zk) could not be brought to where kip101 would go wrong."),
    ],
)  # fmt: skip
def test_the_verdict_comes_first(tmp_path: Path, builder: str, word: str, why: str) -> None:
    (block,) = rendered(BUILDERS[builder](tmp_path / RUN)).find("div", "verdict")
    assert block.find("h1")[0].text == word
    assert block.find("p", "why")[0].text == why
    assert block.classes == {"verdict", builder.split(" ")[0]}


@pytest.mark.parametrize("builder", [name for name in BUILDERS if "hostile" not in name])
def test_all_that_the_harness_writes_is_read(tmp_path: Path, builder: str) -> None:
    run = BUILDERS[builder](tmp_path / RUN)
    written = msgspec.json.decode((run / "verdict.json").read_bytes())
    if "walks" in builder:
        assert msgspec.to_builtins(WALKS.load(run).verdict) == written
        return
    if "retrace" in builder:
        assert msgspec.to_builtins(COUNTEREXAMPLES.load(run).verdict) == written
        return
    loaded = SCRIPTS.load(run)
    assert msgspec.to_builtins(loaded.verdict) == written
    assert msgspec.to_builtins(claims_of(loaded)) == msgspec.json.decode((run / "conformance.json").read_bytes())


def test_every_walk_has_a_row_and_those_that_diverged_all_of_it(tmp_path: Path) -> None:
    page = rendered(sample_many.diverged_walks(tmp_path / RUN))
    assert rows(section(page, "walks")) == [
        "3pass42.50 s41.5247",
        "5violation42.50 s41.5247step 5: ask 2 for its log end",
    ]
    told = section(page, "seed-5")
    assert "seenoffset 1 of epoch 0" in told.text
    assert len(rows(told.find("table", "steps")[0])) == 5


def test_wrong_models_are_told_over_all_walks_and_who_never_diverged(tmp_path: Path) -> None:
    told = section(rendered(sample_many.pass_walks(tmp_path / RUN)), "controls")
    assert rows(told) == [
        "elrthere are none2 of 223.5250 ms1.50 s",
        "elect-anyonea leader need not be in sync0 of 2not told from the right one",
    ]
    assert "Never told from the right one in these walks: elect-anyone." in told.text


def test_every_counterexample_has_a_row_and_a_page_and_what_is_permitted_says_so(tmp_path: Path) -> None:
    run = sample_many.pass_retrace(tmp_path / RUN)
    page = rendered(run)
    assert rows(section(page, "traces")) == [
        "kip101strong-isrnot taken2 fetches from 0explains it too2.50 s",
        "kip320:hw-epochstrong-isrpermittedleader-candidate-completeness: 2 lacks a recordpermitted: that is known "
        "(docs/findings.md: what is known)explains it too2.50 s",
    ]
    linked = [link.attributes["href"] for link in section(page, "traces").find("a")]
    assert linked == ["traces/kip101/report.html", "traces/kip320.hw-epoch/report.html"]
    assert all((run / link).is_file() for link in linked)
    assert "kraft-3.9:fetch-broker-epoch: '1 sends a fetch to 0' cannot be brought about" in page.text


def test_a_claim_is_told_with_its_fact_and_the_scripts_that_show_it(tmp_path: Path) -> None:
    page = rendered(sample_many.violated_conformance(tmp_path / RUN))
    (first, second) = (row for table in section(page, "claims").find("table") for row in rows(table))
    assert (
        "They do; but from 3.7 on the effective min.insync.replicas is at most the number of replicas" in first + second
    )
    violated = next(row for row in (first, second) if row.startswith("34"))
    assert "it is not so that followers refuse" in violated
    assert "violated" in violated
    assert "leader-writes" in violated


def test_a_script_is_told_with_the_steps_of_its_last_attempt(tmp_path: Path) -> None:
    told = section(rendered(sample_many.violated_conformance(tmp_path / RUN)), "scripts")
    first, second = told.find("article")
    assert "seenoffset 1 of epoch 0" in first.text
    assert "4 steps in 1.50 s, at attempt 2; for claim 68" in second.text
    assert [row[0] for row in rows(second)] == ["5", "6", "7", "8"]


@pytest.mark.parametrize(
    ("builder", "expected"),
    [
        ("pass walks", {"seed 3": "pass", "seed 5": "pass"}),
        ("violation walks", {"seed 3": "pass", "seed 5": "failure"}),
        ("undecided walks", {"seed 3": "error", "seed 5": "pass"}),
        ("violation conformance", {"leader-writes": "failure", "min-isr": "pass"}),
        ("undecided conformance", {"leader-writes": "error", "min-isr": "pass"}),
        ("pass retrace", {"kip101": "pass", "kip320:hw-epoch": "system-out"} | SKIPPED),
        ("violation retrace", {"kip279": "failure", "kip320:hw-epoch": "system-out"} | SKIPPED),
        ("undecided retrace", {"kip101": "error"} | SKIPPED),
    ],
)
def test_ci_gets_a_case_for_each(tmp_path: Path, builder: str, expected: dict[str, str]) -> None:
    assert cases(BUILDERS[builder](tmp_path / RUN)) == expected


def test_without_conformance_json_the_claims_are_numbers(tmp_path: Path) -> None:
    run = sample_many.pass_conformance(tmp_path / RUN)
    (run / "conformance.json").unlink()
    page = rendered(run)
    assert "what the claims say is not known" in page.find("ul", "notes")[0].text
    assert len(rows(section(page, "claims"))) == 2


@pytest.mark.parametrize("builder", ["pass walks", "pass conformance"])
def test_without_a_verdict_the_command_to_take_it_again_is_told(tmp_path: Path, builder: str) -> None:
    run = BUILDERS[builder](tmp_path / RUN)
    (run / "verdict.json").unlink()
    with pytest.raises(UsageError, match="did not come to a verdict: take it again with `lockstep"):
        reports.write_all(run)


def test_commands_about_runs_know_them(any_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["report", str(any_run)]) == ExitCode.PASS
    assert capsys.readouterr().out.startswith(f"{any_run / 'report.html'}\n{any_run / 'junit.xml'}\n")
    for command in ("check", "replay"):
        assert run_cli([command, str(any_run)]) == ExitCode.USAGE


@pytest.mark.parametrize("builder", ["hostile walks", "hostile conformance", "hostile retrace"])
def test_hostile_contents_stay_text(tmp_path: Path, builder: str) -> None:
    path, junit, *_ = reports.write_all(BUILDERS[builder](tmp_path / RUN))
    page = read(path)
    assert len(page.find("script")) == 1
    assert HOSTILE in page.text
    assert "<script>alert" not in path.read_text()
    assert "failure" in outcomes(ElementTree.parse(junit).getroot()).values()


def test_it_runs_clean_asks_for_nothing_and_fits_a_phone(browser: Browser, any_run: Path) -> None:
    path, *_ = reports.write_all(any_run)
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
@pytest.mark.parametrize(
    ("builder", "selectors"),
    [
        ("violation walks", (".walks .status.pass", ".walks .status.violation", ".walks a")),
        ("violation conformance", (".claims .status.holds", ".claims small", ".claims .instead", ".script .instead")),
    ],
)
def test_text_stands_out_from_its_background(
    browser: Browser, tmp_path: Path, scheme: Literal["light", "dark"], builder: str, selectors: tuple[str, ...]
) -> None:
    page = browser.new_context(color_scheme=scheme).new_page()
    path, *_ = reports.write_all(BUILDERS[builder](tmp_path / RUN))
    page.goto(path.as_uri())
    for selector in selectors:
        assert page.locator(selector).first.evaluate(CONTRAST) >= 4.5, selector
    page.context.close()
