"""What Kafka promises to readers, of transactions and to groups; what is judged today is in tests/checker."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep_model.guarantees import FURTHER, GUARANTEES, NAMED, Configuration, Faults, Guarantee, Obligation

FURTHER_NAMED: dict[str, Guarantee] = {guarantee.name: guarantee for guarantee in FURTHER}
HELD, PERMITTED, NOT_APPLICABLE = Obligation.HELD, Obligation.PERMITTED, Obligation.NOT_APPLICABLE

SAFE = Configuration(replication=3, min_isr=2, read_committed=True)
OLD = replace(SAFE, transaction_version=0)
CALM, LATE, CUT = Faults(elections=1), Faults(elections=1, delayed=True), Faults(elections=1, lossy=2)


@pytest.mark.parametrize(
    ("name", "configuration", "faults", "required"),
    [
        ("no-aborted-reads", SAFE, LATE, HELD),
        ("no-aborted-reads", OLD, CALM, HELD),
        ("no-aborted-reads", OLD, LATE, PERMITTED),
        ("no-aborted-reads", SAFE, CUT, PERMITTED),
        ("no-aborted-reads", replace(SAFE, read_committed=False), CALM, NOT_APPLICABLE),
        ("atomic-transactions", SAFE, LATE, HELD),
        ("atomic-transactions", OLD, LATE, PERMITTED),
        ("atomic-transactions", replace(OLD, read_committed=False), LATE, NOT_APPLICABLE),
        ("last-stable-offset-advances", OLD, LATE, HELD),
        ("last-stable-offset-advances", replace(OLD, verified=False), LATE, PERMITTED),
        ("last-stable-offset-advances", replace(OLD, verified=False), CALM, HELD),
        ("fencing", OLD, LATE, HELD),
        ("fencing", replace(SAFE, unclean=True), CALM, PERMITTED),
        ("one-owner", replace(SAFE, unclean=True), replace(CUT, delayed=True), HELD),
        ("commits-in-order", SAFE, LATE, HELD),
        ("commits-in-order", replace(SAFE, assignment_epochs=True), LATE, PERMITTED),
        ("commits-in-order", replace(SAFE, assignment_epochs=True), CALM, HELD),
    ],
)
def test_what_is_promised(name: str, configuration: Configuration, faults: Faults, required: Obligation) -> None:
    assert FURTHER_NAMED[name].required(configuration, faults).required is required


def test_a_reader_may_go_back_only_where_what_it_read_may_be_gone() -> None:
    monotonic = NAMED["monotonic-reads"]
    resets = replace(SAFE, resets=True)
    assert monotonic.required(replace(resets, acks=1), CALM).required is HELD
    found = monotonic.required(resets, CUT)
    assert (found.required, "2 at once lost" in found.reason) == (PERMITTED, True)
    assert monotonic.required(replace(resets, unclean=True), CALM).required is PERMITTED
    for told in (SAFE, replace(SAFE, unclean=True)):
        assert monotonic.required(told, CUT).required is HELD


def test_a_late_request_makes_no_difference_to_what_is_judged_today() -> None:
    for guarantee in GUARANTEES:
        assert guarantee.required(OLD, LATE) == guarantee.required(OLD, CALM)


def test_no_name_is_given_twice() -> None:
    assert not FURTHER_NAMED.keys() & NAMED.keys()
    assert len(FURTHER_NAMED) == len(FURTHER)
