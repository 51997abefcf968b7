from __future__ import annotations

import pytest

from lockstep.checker import Verdict
from lockstep_model.guarantees import GUARANTEES
from tests.checker.cases import CASES, Case

SHOWED_TOO_LITTLE = ("a_fault_that_did_not_bite", "a_control_that_did_not_fire")

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_every_guarantee_is_what_the_case_says(case: Case, verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts[case.name]

    statuses = {guarantee.name: guarantee.status for guarantee in verdict.guarantees}
    reasons = {guarantee.name: guarantee.reason for guarantee in verdict.guarantees}
    assert statuses == {guarantee.name: case.expected.get(guarantee.name, "held") for guarantee in GUARANTEES}, reasons
    if case.says is not None:
        assert case.says in "\n".join([*reasons.values(), *(anomaly.text for anomaly in verdict.anomalies)])


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_the_run_is_judged_by_its_worst_guarantee(case: Case, verdicts: dict[str, Verdict]) -> None:
    statuses = set(case.expected.values())

    expected = "violation" if "violated" in statuses else "undecided" if "undecided" in statuses else "pass"
    assert verdicts[case.name].verdict == ("undecided" if case.name in SHOWED_TOO_LITTLE else expected)


def test_a_run_whose_fault_did_not_bite_does_not_pass(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["a_fault_that_did_not_bite"]

    assert {guarantee.status for guarantee in verdict.guarantees} == {"held"}
    assert verdict.verdict == "undecided"
    assert verdict.reason == "no proof that it bit: kill of broker-2 (leader of orders-0)"


def test_a_control_that_fired_passes(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["a_control_that_fired"]

    assert (verdict.verdict, verdict.reason) == ("pass", None)
    assert [(it.guarantee, it.status, it.met) for it in verdict.expectations] == [
        ("no-lost-acks", "permitted", True),
        ("no-phantoms", "held", True),
    ]


def test_a_control_that_did_not_fire_says_what_it_should_have_shown(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["a_control_that_did_not_fire"]

    assert verdict.reason == (
        "this scenario is there to show no-lost-acks permitted, and it came out as not-applicable"
    )
    assert [it.met for it in verdict.expectations] == [False, True]


def test_a_violation_stays_one_whatever_was_expected(verdicts: dict[str, Verdict]) -> None:
    assert verdicts["a_violation_where_something_else_was_expected"].verdict == "violation"


def test_reads_that_go_backwards_are_counted_across_polls_and_within_them(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["backwards_across_polls_and_within_one"]

    assert {guarantee.name: guarantee.count for guarantee in verdict.guarantees}["monotonic-reads"] == 2
    assert {anomaly.name for anomaly in verdict.anomalies} == {"backwards-poll", "backwards-in-poll"}


def test_every_guarantee_has_a_case_that_holds_and_one_that_does_not() -> None:
    for guarantee in GUARANTEES:
        statuses = {case.expected.get(guarantee.name, "held") for case in CASES.values()}
        assert {"held", "violated", "undecided"} <= statuses


def test_a_removed_record_is_named_in_full(verdicts: dict[str, Verdict]) -> None:
    (anomaly,) = verdicts["an_acknowledged_record_removed_by_hand"].anomalies

    assert (anomaly.guarantee, anomaly.name, anomaly.status) == ("no-lost-acks", "lost-ack", "violated")
    assert (anomaly.topic, anomaly.partition, anomaly.offset) == ("orders", 0, 32)
    assert anomaly.value is not None
    (operation,) = anomaly.operations
    assert (operation.kind, operation.outcome) == ("send", "ok")
    assert f"(op {operation.op})" in anomaly.text
    assert operation.return_ns is not None
    assert operation.invoke_ns < operation.return_ns


def test_all_anomalies_are_counted_and_twenty_are_shown(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["more_anomalies_than_are_shown"]

    lost = verdict.guarantees[0]
    assert (lost.name, lost.count) == ("no-lost-acks", 25)
    assert [anomaly.offset for anomaly in verdict.anomalies] == list(range(20))


def test_an_anomaly_names_the_fault_that_was_active_during_it(verdicts: dict[str, Verdict]) -> None:
    during, after = verdicts["lost_during_a_fault_and_after_it"].anomalies
    (unhealed,) = verdicts["lost_during_a_fault_that_nobody_healed"].anomalies

    assert during.fault == "kill of broker-2 (leader of orders-0)"
    assert after.fault is None
    assert unhealed.fault == during.fault


def test_counts_are_those_of_the_history(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["unknown_and_not_there"]

    assert verdict.counts == {"acknowledged": 1, "failed": 0, "unknown": 2, "read": 1, "partitions": 1}
    assert (verdict.operations, verdict.records, verdict.run) == (4, 4, "unknown_and_not_there")
