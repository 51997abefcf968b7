"""Clients, a coordinator and partitions in every order: what holds, what older versions do not keep, and why."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from lockstep.exploration.ours import TRANSACTIONS
from lockstep_model.parameters import Parameters
from lockstep_model.partition.known_producers import replayed
from lockstep_model.search import explore
from lockstep_model.state_machine import State
from lockstep_model.transactions import mutants
from lockstep_model.transactions.coordinator import LAST_EPOCH
from lockstep_model.transactions.invariants import (
    ATOMIC,
    COMMIT_KEPT,
    LSO_NOT_STUCK,
    NOT_REFUSED,
    OWN_COMMIT,
)
from lockstep_model.transactions.machine import FIRST_PARTITION, machine
from lockstep_model.transactions.state import LateRequest, TransactionBounds

TV0 = Parameters(transaction_version=0, transactions_of_4=False)
UNVERIFIED = replace(TV0, transaction_verification=False)
TV2 = Parameters(transaction_version=2)

ZOMBIE = TransactionBounds(transactions=(1, 1))
FAILURES = TransactionBounds(transactions=(2, 0), timeouts=1, coordinators=1)
LAGGING = TransactionBounds(transactions=(2, 0), lagging=True, elections=1)
TWO_PARTITIONS = TransactionBounds(transactions=(2, 0), partitions=2)
LAST_EPOCHS = TransactionBounds(transactions=(3, 0), timeouts=1, first_epoch=LAST_EPOCH - 2)
LAST_EPOCH_IN_TIME = TransactionBounds(transactions=(2, 0), timeouts=1, first_epoch=LAST_EPOCH - 1)
ONE, TWO = TransactionBounds(transactions=(1, 0)), TransactionBounds(transactions=(2, 0))
EVERYTHING_LATE = replace(TWO, late=frozenset(LateRequest))


def late(*kinds: LateRequest, bounds: TransactionBounds = TWO) -> TransactionBounds:
    return replace(bounds, late=frozenset(kinds))


@pytest.mark.parametrize(
    ("parameters", "bounds", "states"),
    [
        pytest.param(TV0, ZOMBIE, 6_387, id="tv0-zombie"),
        pytest.param(TV0, FAILURES, 16_152, id="tv0-failures"),
        pytest.param(TV0, LAGGING, 2_772, id="tv0-lagging"),
        pytest.param(TV0, TWO_PARTITIONS, 27_271, id="tv0-two-partitions"),
        pytest.param(TV0, LAST_EPOCHS, 10_511, id="tv0-last-epochs"),
        pytest.param(UNVERIFIED, ZOMBIE, 3_031, id="unverified-zombie"),
        pytest.param(UNVERIFIED, FAILURES, 7_024, id="unverified-failures"),
        pytest.param(TV2, ZOMBIE, 5_356, id="tv2-zombie"),
        pytest.param(TV2, FAILURES, 12_395, id="tv2-failures"),
        pytest.param(TV2, LAGGING, 2_899, id="tv2-lagging"),
        pytest.param(TV2, TWO_PARTITIONS, 18_601, id="tv2-two-partitions"),
        pytest.param(TV2, LAST_EPOCHS, 13_648, id="tv2-last-epochs"),
        pytest.param(TV2, EVERYTHING_LATE, 15_262, id="tv2-everything-late"),
    ],
)
def test_transactions_keep_what_they_promise(parameters: Parameters, bounds: TransactionBounds, states: int) -> None:
    exploration = explore(machine(parameters, bounds))
    assert exploration.violations == {}
    assert (exploration.complete, exploration.states) == (True, states)


@pytest.mark.long
@pytest.mark.parametrize(
    ("parameters", "bounds", "states"),
    [
        pytest.param(TV0, replace(ZOMBIE, transactions=(2, 1)), 45_260, id="tv0-zombie"),
        pytest.param(TV0, replace(FAILURES, transactions=(1, 1)), 307_155, id="tv0-zombie-and-failures"),
        pytest.param(TV2, replace(ZOMBIE, transactions=(2, 1)), 55_630, id="tv2-zombie"),
        pytest.param(TV2, replace(FAILURES, transactions=(1, 1)), 147_815, id="tv2-zombie-and-failures"),
        pytest.param(TV2, replace(EVERYTHING_LATE, transactions=(1, 1)), 167_753, id="tv2-zombie-and-everything-late"),
        pytest.param(TV0, replace(FAILURES, lagging=True, elections=1), 152_810, id="tv0-failures-of-everybody"),
        pytest.param(
            TV2, replace(EVERYTHING_LATE, lagging=True, elections=1), 150_134, id="tv2-lagging-and-everything-late"
        ),
        pytest.param(TV0, replace(ZOMBIE, partitions=2), 1_033_289, id="tv0-zombie-on-two-partitions"),
        pytest.param(TV2, replace(ZOMBIE, partitions=2), 337_918, id="tv2-zombie-on-two-partitions"),
        pytest.param(
            TV2,
            late(LateRequest.END, LateRequest.MARKER, bounds=TWO_PARTITIONS),
            571_318,
            id="tv2-late-ends-on-two-partitions",
        ),
    ],
)
def test_and_further(parameters: Parameters, bounds: TransactionBounds, states: int) -> None:
    test_transactions_keep_what_they_promise(parameters, bounds, states)


def broken(parameters: Parameters, bounds: TransactionBounds, depth: int | None = None) -> dict[str, int]:
    """Which promises are broken, and after how many actions at least."""
    violations = explore(machine(parameters, bounds), depth=depth).violations
    return {name: violation.depth for name, violation in violations.items()}


def walk(
    chance: random.Random, bounds: TransactionBounds, parameters: Parameters, steps: int = 80
) -> Iterator[tuple[str, State]]:
    """What happens, and where it leads to."""
    walked = machine(parameters, bounds)
    state = walked.initial
    for _ in range(steps):
        enabled = list(walked.enabled(state))
        if not enabled:
            return
        names = sorted({action.rule for action, _ in enabled})
        patient = [name for name in names if not name.endswith("aborts")]  # else hardly anything is ever committed
        rule = chance.choice(patient if patient and chance.random() < 0.9 else names)
        action, after = chance.choice([one for one in enabled if one[0].rule == rule])
        assert walked.apply(state, action) == after
        state = after
        yield action.rule, state


EVERYTHING = TransactionBounds(
    transactions=(2, 1),
    partitions=2,
    late=frozenset(LateRequest),
    timeouts=1,
    coordinators=1,
    lagging=True,
    elections=1,
)


@pytest.mark.parametrize("parameters", [TV0, TV2])
def test_everything_happens_and_leaves_logs_in_order(parameters: Parameters) -> None:
    chance = random.Random(7)
    seen = set()
    for _ in range(50):
        for rule, state in walk(chance, EVERYTHING, parameters):
            seen.add(rule)
            for leader in state[FIRST_PARTITION:]:
                assert leader.last_stable_offset(parameters) <= leader.high_watermark <= leader.log.end
                known = leader.log.known
                assert known == replayed(leader.log.batches())
                opened = {entry.transaction_first_offset for _, entry in known.entries} - {None}
                assert opened == {one.first_offset for one in known.transactions.ongoing}
    assert {rule.name for rule in machine(parameters, EVERYTHING).rules} - seen == set()


class TestLateRequests:
    """What KIP-890 is for. In version 2 none of them does any harm: see everything-late above."""

    def test_without_verification_a_late_batch_leaves_a_transaction_open_for_ever(self) -> None:
        """Recipe 4.6: the batch arrives when the transaction that it was meant for is over."""
        violation = explore(machine(UNVERIFIED, late(LateRequest.PRODUCE)), depth=8).violations[LSO_NOT_STUCK]
        assert violation.trace == (
            "A asks for its producer id",
            "A adds p0",
            "A writes to p0",
            "A aborts",
            "A has its transaction ended",
            "p0 takes its marker",
            "the coordinator hears of the marker on p0",
            "a late batch of A arrives at p0",
        )

    def test_verification_leaves_only_a_refusal(self) -> None:
        """A late copy that arrives before the first batch of the next transaction is taken for a lower sequence."""
        assert broken(TV0, late(LateRequest.PRODUCE)) == {NOT_REFUSED: 13}

    def test_before_version_2_a_late_batch_joins_the_next_transaction_of_a_client_that_keeps_its_epoch(self) -> None:
        """Recipe 4.7, second half: it is committed with the next one, whose own record is taken for its duplicate."""
        keeps_epoch = replace(late(LateRequest.PRODUCE), renews=False)
        assert broken(TV0, keeps_epoch) == {NOT_REFUSED: 13, COMMIT_KEPT: 14, OWN_COMMIT: 15, ATOMIC: 15}
        assert broken(TV2, keeps_epoch) == {}

    def test_before_version_2_a_late_end_ends_the_next_transaction(self) -> None:
        """Recipe 4.7, first half: with two partitions, one half of it is aborted and the other committed."""
        two_partitions = late(LateRequest.END, bounds=TWO_PARTITIONS)
        assert broken(TV0, late(LateRequest.END)) == {OWN_COMMIT: 14}
        assert broken(TV0, two_partitions, depth=17) == {OWN_COMMIT: 14, COMMIT_KEPT: 17, ATOMIC: 17}
        assert broken(TV2, late(LateRequest.END)) == {}

    def test_before_version_2_a_late_marker_ends_the_next_transaction(self) -> None:
        assert broken(TV0, late(LateRequest.MARKER)) == {OWN_COMMIT: 13, COMMIT_KEPT: 13, ATOMIC: 13}
        assert broken(TV2, late(LateRequest.MARKER)) == {}

    def test_in_4_0_and_4_1_it_does_so_in_version_2_too(self) -> None:
        """A marker does not say there which version it is of (KIP-1228)."""
        assert broken(replace(TV2, strict_markers=False), late(LateRequest.MARKER)) == {
            OWN_COMMIT: 11,
            COMMIT_KEPT: 12,
            ATOMIC: 12,
        }


def test_every_guard_is_tried() -> None:
    """Where it shows, in tests/exploration."""
    named = {value for name, value in vars(mutants).items() if name.isupper()}
    assert named == {guard for specification in TRANSACTIONS for guard in specification.mutants}
