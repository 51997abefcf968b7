"""The model's table of promises, row by row, each with the neighbour that must come out otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep_model.guarantees import ACKS_ALL, GUARANTEES, NAMED, Configuration, Faults, Obligation

HELD, PERMITTED, NOT_APPLICABLE = Obligation.HELD, Obligation.PERMITTED, Obligation.NOT_APPLICABLE

SAFE = Configuration(acks=ACKS_ALL, replication=3, min_isr=2)
CALM = Faults(elections=0)
ELECTED = Faults(elections=1, crashed=1)

STAYS = [
    pytest.param(SAFE, CALM, HELD, "acks=all promises 2 copies", id="acks=all"),
    pytest.param(SAFE, ELECTED, HELD, "acks=all promises 2 copies", id="acks=all and an election"),
    pytest.param(SAFE, Faults(), HELD, "acks=all promises 2 copies", id="acks=all and nobody watched"),
    pytest.param(replace(SAFE, min_isr=1), ELECTED, HELD, "acks=all promises 1 copy", id="one copy, and nothing lost"),
    pytest.param(replace(SAFE, acks=0), CALM, NOT_APPLICABLE, "acks=0 asks for no acknowledgement", id="acks=0"),
    pytest.param(replace(SAFE, acks=1), CALM, HELD, "no other leader was elected", id="acks=1"),
    pytest.param(replace(SAFE, acks=1), ELECTED, PERMITTED, "acks=1 promises one copy", id="acks=1 and an election"),
    pytest.param(replace(SAFE, acks=1), Faults(), PERMITTED, "acks=1 promises one copy", id="acks=1, nobody watched"),
    pytest.param(
        replace(SAFE, acks=1, replication=1, min_isr=1), ELECTED, HELD, "the only replica", id="acks=1, only replica"
    ),
    pytest.param(
        replace(SAFE, acks=1, replication=1, min_isr=1),
        Faults(elections=0, lossy=1),
        PERMITTED,
        "1 at once lost the end of their logs",
        id="acks=1, only replica cut back",
    ),
    pytest.param(
        replace(SAFE, acks=1), Faults(elections=0, lossy=1), PERMITTED, "acks=1 promises one copy", id="acks=1 cut back"
    ),
    pytest.param(replace(SAFE, unclean=True), CALM, HELD, "acks=all", id="unclean allowed, no election"),
    pytest.param(replace(SAFE, unclean=True), ELECTED, PERMITTED, "unclean.leader.election", id="unclean, election"),
    pytest.param(replace(SAFE, unclean=True), Faults(), PERMITTED, "unclean.leader.election", id="unclean, unwatched"),
    pytest.param(SAFE, Faults(elections=1, lossy=1), HELD, "acks=all promises 2", id="fewer cut back than copies"),
    pytest.param(
        SAFE, Faults(elections=1, lossy=2), PERMITTED, "promises 2 copies, and 2 at once lost", id="all copies cut back"
    ),
    pytest.param(
        replace(SAFE, min_isr=1), Faults(elections=0, lossy=1), PERMITTED, "promises 1 copy, and 1", id="min ISR 1, cut"
    ),
    pytest.param(replace(SAFE, elr=True), Faults(elections=2, crashed=1), HELD, "acks=all", id="ELR, one crash"),
    pytest.param(replace(SAFE, elr=True), Faults(elections=2, crashed=2), PERMITTED, "2 were at once", id="ELR, two"),
    pytest.param(SAFE, Faults(elections=2, crashed=3), HELD, "acks=all", id="crashes alone lose nothing without ELR"),
    pytest.param(
        SAFE, Faults(elections=1, unclean=True), PERMITTED, "elected on request", id="an unclean election was asked for"
    ),
    pytest.param(
        SAFE, Faults(elections=1, lossy=1, isr_cut=True), PERMITTED, "may lead again", id="the last one standing, cut"
    ),
    pytest.param(
        replace(SAFE, elr=True), Faults(elections=1, lossy=1, isr_cut=True), HELD, "acks=all", id="ELR, last one cut"
    ),
    pytest.param(
        replace(SAFE, elr=True, min_isr=3), Faults(elections=2, crashed=2), HELD, "acks=all", id="ELR, two of three"
    ),
]


WITH_ACKS_ALL = [row for row in STAYS if isinstance(row.values[0], Configuration) and row.values[0].acks == ACKS_ALL]


@pytest.mark.parametrize(("configuration", "faults", "required", "because"), STAYS)
@pytest.mark.parametrize("name", ["no-lost-acks", "one-value-per-offset"])
def test_what_is_acknowledged_stays(
    name: str, configuration: Configuration, faults: Faults, required: Obligation, because: str
) -> None:
    found = NAMED[name].required(configuration, faults)

    assert found.required is required
    assert because in found.reason


@pytest.mark.parametrize(("configuration", "faults", "required", "because"), WITH_ACKS_ALL)
def test_what_was_read_is_not_sent_again_as_long_as_it_stays(
    configuration: Configuration, faults: Faults, required: Obligation, because: str
) -> None:
    for acks in (ACKS_ALL, 0, 1):  # whoever reads a record is promised as much whatever its writer asked for
        found = NAMED["no-duplicates"].required(replace(configuration, acks=acks), faults)

        assert found.required is required
        assert because in found.reason


def test_a_client_that_gave_up_a_record_may_send_others_again() -> None:
    gave_up = replace(CALM, given_up=True)

    found = NAMED["no-duplicates"].required(SAFE, gave_up)

    assert found.required is PERMITTED
    assert "takes a new producer epoch" in found.reason
    for guarantee in GUARANTEES:
        if guarantee.name != "no-duplicates":
            assert guarantee.required(SAFE, gave_up).required is HELD


def test_only_idempotent_writers_are_promised_no_duplicates() -> None:
    promise = NAMED["no-duplicates"]

    assert promise.required(SAFE, ELECTED).required is HELD
    assert promise.required(replace(SAFE, idempotent=False), CALM).required is PERMITTED
    assert promise.required(replace(SAFE, acks=1), ELECTED).required is HELD


@pytest.mark.parametrize("name", ["no-phantoms", "real-time-order", "monotonic-reads"])
def test_the_rest_is_always_promised(name: str) -> None:
    worst = Configuration(acks=0, idempotent=False, replication=1, min_isr=1, unclean=True, elr=True)

    assert NAMED[name].required(worst, Faults(crashed=5, lossy=5, given_up=True)).required is HELD


def test_more_faults_never_make_a_promise_stronger() -> None:
    configurations = [
        Configuration(acks=acks, replication=replication, min_isr=min_isr, unclean=unclean, elr=elr)
        for acks in (ACKS_ALL, 0, 1)
        for replication in (None, 1, 3)
        for min_isr in ((1,) if replication == 1 else (1, 2, 3))
        for unclean in (False, True)
        for elr in (False, True)
    ]
    for guarantee in GUARANTEES:
        for configuration in configurations:
            for calm in (Faults(elections=0), Faults(elections=1, crashed=1), Faults(elections=1, crashed=2)):
                for worse in (
                    replace(calm, elections=3),
                    replace(calm, crashed=calm.crashed + 1),
                    replace(calm, lossy=calm.lossy + 1),
                    replace(calm, given_up=True),
                ):
                    before = guarantee.required(configuration, calm).required
                    after = guarantee.required(configuration, worse).required
                    assert before is after or before is HELD, (guarantee.name, configuration, calm, worse)
