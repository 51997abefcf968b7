"""What `report.html` says, and that it keeps to itself."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import lockstep_reports as reports
from lockstep.errors import EnvironmentError_, HistoryError, UsageError
from tests.reports import sample_runs
from tests.reports.html_document import Element, read, section

RUN = "20261116T080000Z-leader-kill-7"

BUILDERS: dict[str, Callable[[Path], Path]] = {
    "pass": sample_runs.pass_run,
    "violation": sample_runs.violation_run,
    "undecided": sample_runs.undecided_run,
    "hostile": sample_runs.hostile_run,
}


@pytest.fixture(params=sorted(BUILDERS))
def any_run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return BUILDERS[request.param](tmp_path / RUN)


def rendered(run: Path) -> Element:
    return read(reports.render(run))


def numbers(page: Element) -> dict[str, str]:
    (block,) = page.find("dl", "numbers")
    return {item.find("dt")[0].text: item.find("dd")[0].text for item in block.find("div")}


def statuses(page: Element) -> dict[str, str]:
    rows = section(page, "guarantees").find("tbody")[0].find("tr")
    return {row.find("th")[0].texts[0]: row.find("span", "status")[0].text for row in rows}


@pytest.mark.parametrize(
    ("builder", "word", "why"),
    [
        ("pass", "Pass", "6 of 6 guarantees held, over 17,402 acknowledged writes, through the kill of broker-2"),
        ("violation", "Violation", "no-lost-acks is broken: 4 acknowledged writes to orders-0"),
        ("undecided", "Undecided", "no-lost-acks cannot be decided: orders-1 was not read to its end"),
    ],
)
def test_verdict_comes_first_as_word_icon_and_reason(tmp_path: Path, builder: str, word: str, why: str) -> None:
    page = rendered(BUILDERS[builder](tmp_path / RUN))
    (block,) = page.find("div", "verdict")
    assert block.find("h1")[0].text == word
    assert why in block.find("p", "why")[0].text
    assert block.find("use")[0].attributes["href"] == f"#i-{builder}"
    assert block.classes == {"verdict", builder}
    assert page.find("title")[0].text == f"{word}: leader-kill, seed 7"


def test_every_guarantee_is_listed_with_its_status_and_reason(tmp_path: Path) -> None:
    page = rendered(sample_runs.violation_run(tmp_path / RUN))
    assert statuses(page) == {
        "no-lost-acks": "violated",
        "one-value-per-offset": "held",
        "no-duplicates": "permitted",
        "no-phantoms": "held",
        "real-time-order": "violated",
        "monotonic-reads": "not applicable",
    }
    assert "writer 3 is not idempotent, so a retry may append twice" in section(page, "guarantees").text


@pytest.mark.parametrize(("met", "said"), [(True, "as expected"), (False, "expected: permitted")])
def test_what_the_scenario_expected_stands_beside_what_came_out(tmp_path: Path, met: bool, said: str) -> None:
    run = sample_runs.pass_run(tmp_path / RUN)
    expectation = {"guarantee": "no-lost-acks", "status": "permitted", "met": met}
    sample_runs.edit(run, "verdict.json", expectations=[expectation])
    first, *others = section(rendered(run), "guarantees").find("tbody")[0].find("tr")
    assert said in first.find("td")[0].text
    assert not any("expected" in row.find("td")[0].text for row in others)


def test_key_numbers(tmp_path: Path) -> None:
    assert numbers(rendered(sample_runs.pass_run(tmp_path / RUN))) == {
        "writes acknowledged": "17,402",
        "outcome unknown": "37",
        "writes failed": "0",
        "records read": "34,871",
        "partitions": "3",
        "longest silence": "2.0 s",
        "duration": "28.4 s",
        "Kafka": "4.3.1",
        "mode": "kraft",
        "backend": "process",
        "seed": "7",
    }


def test_evidence_shows_the_operations_and_the_fault(tmp_path: Path) -> None:
    evidence = section(rendered(sample_runs.violation_run(tmp_path / RUN)), "evidence")
    assert [heading.texts[0].strip() for heading in evidence.find("h3")] == [
        "no-lost-acks",
        "real-time-order",
        "no-duplicates",
    ]
    first = evidence.find("article")[0]
    assert "lost-ack orders-0, offset 4117" in first.text
    assert "record 2031 of writer 1" in first.text
    assert "kill of broker-2 (leader of orders-0)" in first.text
    rows = [row.text for row in first.find("tbody")[0].find("tr")]
    assert rows[0].startswith("#8120 send")
    assert "5.080 s" in rows[0]
    assert "3.4 ms" in rows[0]
    assert len(first.find("svg", "spacetime")) == 1


def test_only_the_first_anomalies_of_a_guarantee_get_a_diagram(tmp_path: Path) -> None:
    evidence = section(rendered(sample_runs.violation_run(tmp_path / RUN)), "evidence")
    assert len(evidence.find("svg", "spacetime")) == 3 + 1 + 1
    (more,) = evidence.find("details")
    assert "1 more of no-lost-acks" in more.text
    assert "offset 4120" in more.text


def test_real_time_order_is_drawn_with_an_arrow(tmp_path: Path) -> None:
    evidence = section(rendered(sample_runs.violation_run(tmp_path / RUN)), "evidence")
    arrows = {
        article.find("h4")[0].texts[0].strip(): len(article.find("polygon", "before-head"))
        for article in evidence.find("article")
    }
    assert arrows == {"lost-ack": 0, "order-inversion": 1, "duplicate": 0}


def test_a_run_without_anomalies_has_no_evidence_section(tmp_path: Path) -> None:
    page = rendered(sample_runs.pass_run(tmp_path / RUN))
    assert "evidence" not in {it.attributes.get("id") for it in page.find("section")}


def test_faults_are_told_with_target_proof_and_heal(tmp_path: Path) -> None:
    faults = section(rendered(sample_runs.pass_run(tmp_path / RUN)), "faults")
    assert [heading.text for heading in faults.find("h3")] == ["kill of broker-2 (leader of orders-0) step 2"]
    told = [line.text for line in faults.find("li")]
    assert told == [
        "5.094 s Intended",
        "5.100 s Done killed pid 4711; signal SIGKILL",
        "6.950 s Proof that it bit state stopped; partition orders-0; leader 2 → 3; leader epoch 0 → 1; "
        "moved after 1840 ms",
        "10.400 s Healed restarted pid 4802; in ISR of orders-0, orders-1, orders-2; back after 5310 ms",
    ]


def test_a_fault_that_was_not_healed_says_so(tmp_path: Path) -> None:
    page = rendered(sample_runs.undecided_run(tmp_path / RUN))
    assert "Never healed" in section(page, "faults").text
    assert "kill broker-2 (never healed)" in section(page, "timeline").text


def test_a_fault_without_proof_says_so(tmp_path: Path) -> None:
    run = sample_runs.pass_run(tmp_path / RUN)
    lines = [json.loads(line) for line in (run / "ledger.jsonl").read_text().splitlines()]
    lines[3]["detail"] = {"bit": False, "why": "broker-2 survived SIGKILL"}
    (run / "ledger.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (alert,) = section(rendered(run), "faults").find("li", "alert")
    assert alert.text == "6.950 s Not proved why broker-2 survived SIGKILL"


def test_plan_is_told_in_words(tmp_path: Path) -> None:
    plan = section(rendered(sample_runs.pass_run(tmp_path / RUN)), "plan")
    assert [line.text for line in plan.find("li")] == [
        "Topic orders: 3 partitions, replication 3, min.insync.replicas 2",
        "3 writers on orders: acks=all, idempotent, in flight 5",
        "2 readers on orders",
        "Hold for 5 s",
        "Inject kill: leader of orders-0",
        "Hold for 5 s",
        "Heal the kill of step 2",
        "Hold for 5 s",
    ]


def test_plan_tells_what_it_asks_of_the_cluster_and_which_holds_are_exact(tmp_path: Path) -> None:
    run = sample_runs.pass_run(tmp_path / RUN)
    steps = [
        {"step": 1, "action": "hold", "seconds": 2.5, "exactly": True},
        {"step": 2, "action": "hold", "seconds": 1, "exactly": False},
    ]
    sample_runs.edit(run, "plan.json", cluster={"replica.lag.time.max.ms": "30000"}, steps=steps)
    lines = [line.text for line in section(rendered(run), "plan").find("li")]
    assert lines[0] == "Every broker with replica.lag.time.max.ms=30000"
    assert lines[-2:] == ["Hold for exactly 2.5 s", "Hold for 1 s"]


def test_commands_to_reproduce(tmp_path: Path) -> None:
    commands = [code.text for code in section(rendered(sample_runs.pass_run(tmp_path / RUN)), "reproduce").find("code")]
    assert commands == [
        f"lockstep replay runs/{RUN}",
        "lockstep run leader-kill --seed 7",
        f"lockstep check runs/{RUN}",
    ]


def test_the_page_names_no_path_of_the_machine_it_was_made_on(any_run: Path) -> None:
    assert str(any_run.parent) not in reports.render(any_run).read_text()


def test_secrets_in_overrides_are_hidden(tmp_path: Path) -> None:
    run = sample_runs.pass_run(tmp_path / RUN)
    overrides = {"ssl.keystore.password": "hunter2", "num.io.threads": "2"}
    sample_runs.edit(run, "run.json", spec={"kafka": "4.3.1", "overrides": overrides})
    text = reports.render(run).read_text()
    assert "hunter2" not in text
    assert "num.io.threads 2" in text


def test_nothing_is_loaded_from_anywhere(any_run: Path) -> None:
    page = rendered(any_run)
    for element in page.everything():
        for name in ("src", "href", "xlink:href", "data", "action", "poster", "srcset"):
            assert element.attributes.get(name, "#").startswith("#"), f"<{element.tag} {name}=…> points outside"
    style = page.find("style")[0].text
    assert "@import" not in style
    assert "url(" not in style


def test_policy_allows_only_the_style_and_script_of_the_page(any_run: Path) -> None:
    page = rendered(any_run)
    policy = next(
        meta.attributes["content"]
        for meta in page.find("meta")
        if meta.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    directives = dict(directive.strip().split(" ", 1) for directive in policy.split(";"))
    assert directives["default-src"] == "'none'"
    for directive, tag in (("style-src", "style"), ("script-src", "script")):
        inline = [it for it in page.find(tag) if it.attributes.get("type") != "application/json"]
        hashes = {f"'sha256-{base64.b64encode(_sha256(it)).decode()}'" for it in inline}
        assert set(directives[directive].split()) == hashes


def _sha256(element: Element) -> bytes:
    return hashlib.sha256("".join(element.texts).encode()).digest()


def test_nothing_carries_inline_style_or_handlers(any_run: Path) -> None:
    for element in rendered(any_run).everything():
        assert not [name for name in element.attributes if name == "style" or name.startswith("on")]


def test_hostile_contents_stay_text(tmp_path: Path) -> None:
    path = reports.render(sample_runs.hostile_run(tmp_path / RUN))
    page = read(path)
    clean = read(reports.render(sample_runs.violation_run(tmp_path / "clean")))
    assert len(page.find("script")) == len(clean.find("script"))
    assert not page.find("img")
    assert sample_runs.HOSTILE in section(page, "guarantees").text
    assert sample_runs.HOSTILE in section(page, "evidence").text
    assert sample_runs.HOSTILE in section(page, "faults").text
    assert sample_runs.HOSTILE in section(page, "plan").text
    assert sample_runs.HOSTILE in section(page, "environment").text
    assert "<script>alert" not in path.read_text()


def test_invisible_characters_are_made_visible_and_endless_text_ends(tmp_path: Path) -> None:
    text = reports.render(sample_runs.hostile_run(tmp_path / RUN)).read_text()
    assert "\u202e" not in text
    assert "\0" not in text
    assert "\\u202egnp\\u0000" in text
    assert "x" * 3000 not in text


def test_every_picture_is_well_formed_and_described(any_run: Path) -> None:
    text = reports.render(any_run).read_text()
    pictures = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]
    drawn = [svg for svg in pictures if svg.get("role") == "img"]
    assert drawn
    for svg in drawn:
        assert svg.findtext("title")
        assert svg.findtext("desc")
        for element in svg.iter():
            assert "nan" not in str(element.attrib)
            assert "inf" not in str(element.attrib)


def test_timeline_tells_leaders_faults_and_silence(tmp_path: Path) -> None:
    timeline = section(rendered(sample_runs.pass_run(tmp_path / RUN)), "timeline")
    (svg,) = timeline.find("svg", "timeline")
    labels = [label.text for label in svg.find("text")]
    for label in (
        "load",
        "final-read",
        "kill broker-2",
        "orders-0",
        "broker 2 · epoch 0",
        "broker 3 · epoch 1",
        "no leader",
    ):
        assert label in labels
    assert labels.count("ISR 1, 3") == 3
    assert "↑ 8,400" in labels
    titles = [title.text for title in svg.find("title")]
    assert "kill broker-2 (leader of orders-0): from 5.1 s, healed at 10.4 s" in titles
    assert "37 writes given up at 5.0 s: outcome unknown" in titles
    assert len(svg.find("rect", "silence")) == 1
    assert "No write was acknowledged between 5.0 s and 7.0 s." in timeline.text


def test_fault_band_and_dip_share_the_time_axis(tmp_path: Path) -> None:
    (svg,) = rendered(sample_runs.pass_run(tmp_path / RUN)).find("svg", "timeline")
    (band,), (silence,) = svg.find("rect", "band"), svg.find("rect", "silence")
    start, width = float(band.attributes["x"]), float(band.attributes["width"])
    assert start < float(silence.attributes["x"]) + float(silence.attributes["width"]) < start + width


def test_latency_lines_break_where_nothing_was_measured(tmp_path: Path) -> None:
    (svg,) = rendered(sample_runs.pass_run(tmp_path / RUN)).find("svg", "timeline")
    assert len(svg.find("path", "p99")) == 2


def test_a_long_run_stays_small(tmp_path: Path) -> None:
    run = sample_runs.violation_run(tmp_path / RUN)
    series = json.loads((run / "series.json").read_text())
    buckets = 7200
    lanes = [lane | {"partition": number} for number in range(60) for lane in series["leaders"][:1]]
    sample_runs.edit(
        run,
        "series.json",
        seconds=buckets / 2,
        throughput=[{"t": i / 2, "acknowledged": 600 + i % 37, "unknown": i % 3, "read": 1200} for i in range(buckets)],
        latency=[
            {"t": i / 2, "p50_ms": 3.0, "p95_ms": 9.0 + i % 5, "p99_ms": 20.0, "max_ms": 30.0 + i % 50}
            for i in range(buckets)
        ],
        leaders=lanes,
    )
    path = reports.render(run)
    assert path.stat().st_size < 300_000
    timeline = section(read(path), "timeline")
    assert "24 recorded ones each" in timeline.text
    assert "36 partitions with fewer changes are not shown." in timeline.text


def test_merging_buckets_loses_no_count_and_keeps_the_worst_latency(tmp_path: Path) -> None:
    run = sample_runs.pass_run(tmp_path / RUN)
    sample_runs.edit(
        run,
        "series.json",
        seconds=60.0,
        bucket_s=0.1,
        throughput=[{"t": i * 0.1, "acknowledged": 1, "unknown": 0, "read": 2} for i in range(600)],
        latency=[{"t": i * 0.1, "p50_ms": 1.0, "p95_ms": 2.0, "p99_ms": 3.0, "max_ms": 4.0 + i} for i in range(600)],
    )
    (table,) = section(rendered(run), "timeline").find("table")
    cells = [[cell.text for cell in row.find("td")] for row in table.find("tbody")[0].find("tr")]
    assert len(cells) == 300
    assert {row[0] for row in cells} == {"2"}
    assert cells[-1][-1] == "603.0"


@pytest.mark.parametrize("name", ["run.json", "plan.json", "series.json", "ledger.jsonl"])
def test_a_missing_file_is_noted_and_the_rest_is_told(tmp_path: Path, name: str) -> None:
    run = sample_runs.violation_run(tmp_path / RUN)
    (run / name).unlink()
    page = rendered(run)
    (notes,) = page.find("ul", "notes")
    assert f"This run has no {name}:" in notes.text
    assert page.find("h1")[0].text == "Violation"
    assert "kill of broker-2" in section(page, "faults").text
    assert "5.080 s" in section(page, "evidence").text


@pytest.mark.parametrize("name", ["run.json", "plan.json", "series.json"])
def test_a_damaged_file_is_noted_and_the_rest_is_told(tmp_path: Path, name: str) -> None:
    run = sample_runs.pass_run(tmp_path / RUN)
    (run / name).write_text((run / name).read_text()[:40])
    page = rendered(run)
    assert f"{name} cannot be read" in page.find("ul", "notes")[0].text
    assert page.find("h1")[0].text == "Pass"


def test_a_complete_run_has_no_notes(tmp_path: Path) -> None:
    assert not rendered(sample_runs.pass_run(tmp_path / RUN)).find("ul", "notes")


def test_a_verdict_alone_makes_a_report(tmp_path: Path) -> None:
    run = sample_runs.violation_run(tmp_path / RUN)
    for name in ("run.json", "plan.json", "series.json", "ledger.jsonl"):
        (run / name).unlink()
    page = rendered(run)
    assert statuses(page)["no-lost-acks"] == "violated"
    assert numbers(page)["writes acknowledged"] == "17,402"
    assert f"lockstep replay runs/{RUN}" in section(page, "reproduce").text
    assert "No fault is recorded." in section(page, "faults").text


def test_a_torn_ledger_line_is_counted(tmp_path: Path) -> None:
    run = sample_runs.pass_run(tmp_path / RUN)
    with (run / "ledger.jsonl").open("a") as ledger:
        ledger.write('{"entry": 10, "time_n')
    page = rendered(run)
    assert "1 unreadable line" in page.find("ul", "notes")[0].text
    assert "kill of broker-2" in section(page, "faults").text


def test_a_run_that_was_not_judged_is_refused_and_nothing_written(tmp_path: Path) -> None:
    run = sample_runs.pass_run(tmp_path / RUN)
    (run / "verdict.json").unlink()
    before = sorted(run.iterdir())
    with pytest.raises(UsageError, match="judge it first with `lockstep check"):
        reports.write_all(run)
    assert sorted(run.iterdir()) == before


def test_a_damaged_verdict_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    run = sample_runs.pass_run(tmp_path / RUN)
    sample_runs.edit(run, "verdict.json", verdict="fine")
    with pytest.raises(HistoryError, match=r"verdict\.json of .* cannot be read .*lockstep check"):
        reports.render(run)


def test_a_directory_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a run directory"):
        reports.render(tmp_path / "nothing")


def test_latest_is_followed_to_the_run_it_names(tmp_path: Path) -> None:
    run = sample_runs.pass_run(tmp_path / RUN)
    for name in ("run.json", "verdict.json"):
        document = json.loads((run / name).read_text())
        del document["run"]
        (run / name).write_text(json.dumps(document))
    (tmp_path / "latest").symlink_to(RUN)
    assert f"lockstep replay runs/{RUN}" in section(rendered(tmp_path / "latest"), "reproduce").text


def test_a_report_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = sample_runs.pass_run(tmp_path / RUN)
    path = reports.render(run)
    before = path.read_bytes()

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    sample_runs.edit(run, "verdict.json", verdict="undecided")
    with pytest.raises(EnvironmentError_, match=r"cannot write report\.html .*No space left"):
        reports.render(run)
    assert path.read_bytes() == before
    assert not list(run.glob(".*"))


@pytest.mark.parametrize(
    "series",
    [
        {"throughput": [], "latency": [], "leaders": [], "faults": [], "phases": []},
        {"seconds": 0.0, "bucket_s": 0.0},
        {"seconds": 1e300},
        {"throughput": [{"t": -3.0, "acknowledged": 1}, {"t": 1e12, "acknowledged": 1}]},
        {"latency": [{"t": 0.0, "p50_ms": 0.0, "p95_ms": 0.0, "p99_ms": 0.0, "max_ms": 0.0}]},
        {"leaders": [{"topic": "orders", "partition": 0, "lane": []}]},
        {"leaders": [{"topic": "orders", "partition": 0, "lane": [{"t": 99.0, "leader": None, "isr": []}]}]},
        {"faults": [{"fault": "kill", "start_t": 500.0}, {"fault": "cut", "start_t": -2.0, "end_t": -1.0}]},
    ],
    ids=["empty", "no-time", "endless", "far-buckets", "zero-latency", "empty-lane", "no-leader", "faults-outside"],
)
def test_odd_series_still_make_well_formed_pictures(tmp_path: Path, series: dict[str, Any]) -> None:
    run = sample_runs.violation_run(tmp_path / RUN)
    sample_runs.edit(run, "series.json", **series)
    (svg,) = re.findall(r'<svg[^>]*class="timeline".*?</svg>', reports.render(run).read_text(), re.DOTALL)
    for element in ElementTree.fromstring(svg).iter():
        assert not re.search(r"\b(nan|inf)\b", " ".join(element.attrib.values()))
