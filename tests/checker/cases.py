"""Every guarantee as histories of two to eight operations: what must hold, what must not, and what only looks wrong.

A case names the statuses that are not `held`; every other guarantee must be. All cases are judged in one job.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lockstep.checker import SAMPLE
from lockstep.history.schema import SEALED, Outcome, value_id
from tests.checker.histories import Run

Build = Callable[[Path], None]


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    build: Build
    expected: dict[str, str] = field(default_factory=dict)
    """The status of every guarantee that is not held."""
    says: str | None = None
    """A sentence that one of the anomalies, or else one of the reasons, must contain."""


CASES: dict[str, Case] = {}

LOST, ONE, DUPLICATES, PHANTOMS, ORDER, MONOTONIC = (
    "no-lost-acks",
    "one-value-per-offset",
    "no-duplicates",
    "no-phantoms",
    "real-time-order",
    "monotonic-reads",
)
ALL = (LOST, ONE, DUPLICATES, PHANTOMS, ORDER, MONOTONIC)


def history(says: str | None = None, **expected: str) -> Callable[[Callable[[Run], None]], None]:
    """Register a hand-written history; keywords are guarantees with underscores."""

    def register(write: Callable[[Run], None]) -> None:
        def build(directory: Path) -> None:
            run = Run(directory)
            write(run)
            run.seal()

        _add(write.__name__, build, says, expected)

    return register


def crashed(says: str | None = None, **expected: str) -> Callable[[Callable[[Run], None]], None]:
    """The same, but the recorder died before it could seal."""

    def register(write: Callable[[Run], None]) -> None:
        def build(directory: Path) -> None:
            run = Run(directory)
            write(run)
            run.crash()

        _add(write.__name__, build, says, expected)

    return register


def damage(says: str | None = None, **expected: str) -> Callable[[Callable[[Path], None]], None]:
    """Register the bundled sample, damaged in its sealed files."""

    def register(harm: Callable[[Path], None]) -> None:
        def build(directory: Path) -> None:
            shutil.copytree(SAMPLE, directory, dirs_exist_ok=True)
            harm(directory / "history")

        _add(harm.__name__, build, says, expected)

    return register


def _add(name: str, build: Build, says: str | None, expected: dict[str, str]) -> None:
    assert name not in CASES
    statuses = {guarantee.replace("_", "-"): status for guarantee, status in expected.items()}
    CASES[name] = Case(name=name, build=build, expected=statuses, says=says)


# no-lost-acks


@history()
def acknowledged_and_there(run: Run) -> None:
    writer = run.writer()
    a, b = run.send(writer, at=0), run.send(writer, at=1)
    run.final((0, a), (1, b))


@history(
    says="orders-0 offset 1: value w1#1 was acknowledged to writer 1 (op 2) and is not in the log read to its end at 1",
    no_lost_acks="violated",
)
def acknowledged_and_lost(run: Run) -> None:
    writer = run.writer()
    a, _ = run.send(writer, at=0), run.send(writer, at=1)
    run.final((0, a))


@history(says="value w1#0", no_lost_acks="violated")
def lost_although_somebody_read_it(run: Run) -> None:
    writer, reader = run.writer(), run.reader()
    a = run.send(writer, at=0)
    run.poll(reader, (0, a))
    run.final(end=1)


@history()
def deleted_with_the_beginning_of_the_log(run: Run) -> None:
    writer = run.writer()
    _, b = run.send(writer, at=0), run.send(writer, at=1)
    run.final((1, b), start=1)


@history(says="1 of 1 partitions were not read to their ends (orders-0)", no_lost_acks="undecided")
def final_reader_did_not_get_to_the_end(run: Run) -> None:
    writer = run.writer()
    a, _ = run.send(writer, at=0), run.send(writer, at=1)
    run.final((0, a), end=2, reached=1)


@history(no_lost_acks="undecided")
def nobody_read_to_the_end(run: Run) -> None:
    writer, reader = run.writer(), run.reader()
    a = run.send(writer, at=0)
    run.poll(reader, (0, a))


@history(says="orders-1 offset 0", no_lost_acks="violated")
def lost_in_one_partition_while_another_is_unproven(run: Run) -> None:
    writer, reader = run.writer(), run.reader()
    a = run.send(writer, at=0)
    run.send(writer, at=0, partition=1)
    run.poll(reader, (0, a))
    run.final(partition=1)


@history(says="acks=1 promises one copy", no_lost_acks="permitted")
def lost_with_acks_one(run: Run) -> None:
    writer = run.writer(acks=1)
    a, _ = run.send(writer, at=0), run.send(writer, at=1)
    run.final((0, a))


@history(says="which is gone when a replica without it is elected", no_lost_acks="permitted")
def lost_with_acks_one_and_an_election(run: Run) -> None:
    run.plan()
    run.watched(4, 5)
    _lost_with_acks_one(run)


@history(says="1 of 2 acknowledged records", no_lost_acks="violated")
def lost_with_acks_one_although_the_leader_stayed(run: Run) -> None:
    run.plan()
    run.watched(4, 4)
    _lost_with_acks_one(run)


@history(no_lost_acks="violated")
def lost_with_acks_one_although_the_leader_only_took_a_new_epoch(run: Run) -> None:
    run.plan()
    run.watched(4, 5, leader=1)
    _lost_with_acks_one(run)


@history(no_lost_acks="violated")
def lost_with_acks_one_although_the_leader_was_only_away(run: Run) -> None:
    run.plan()
    run.watched(4, leader=1)
    run.watched(5, leader=-1)
    run.watched(6, leader=1)
    _lost_with_acks_one(run)


@history(says="which is gone when a replica without it is elected", no_lost_acks="permitted")
def lost_with_acks_one_and_an_epoch_that_nobody_saw(run: Run) -> None:
    run.plan()
    run.watched(4, 6, leader=1)
    _lost_with_acks_one(run)


@history(no_lost_acks="permitted")
def lost_with_acks_one_and_another_leader_for_a_while(run: Run) -> None:
    run.plan()
    run.watched(4, leader=1)
    run.watched(5, leader=2)
    run.watched(6, leader=1)
    _lost_with_acks_one(run)


@history(no_lost_acks="violated")
def lost_with_acks_one_and_an_election_elsewhere(run: Run) -> None:
    run.plan()
    run.watched(4)
    run.watched(4, 5, partition=1)
    _lost_with_acks_one(run)


@history(no_lost_acks="violated")
def lost_with_acks_one_by_the_only_replica(run: Run) -> None:
    run.plan(replication=1, min_isr=1)
    run.watched(0, 1)
    _lost_with_acks_one(run)


def _lost_with_acks_one(run: Run) -> None:
    writer = run.writer(acks=1)
    a, _ = run.send(writer, at=0), run.send(writer, at=1)
    run.final((0, a))


@history(says="value w1#1", no_lost_acks="violated")
def lost_with_acks_one_after_somebody_had_read_it(run: Run) -> None:
    run.plan()
    run.watched(4, 5)
    writer, reader = run.writer(acks=1), run.reader()
    a, b = run.send(writer, at=0), run.send(writer, at=1)
    run.poll(reader, (0, a), (1, b))
    run.final((0, a))


@history(no_lost_acks="permitted", one_value_per_offset="not-applicable", no_duplicates="not-applicable")
def lost_after_somebody_had_read_it_where_unclean_elections_are_allowed(run: Run) -> None:
    run.plan(config=UNCLEAN)
    run.watched(4, 5)
    writer, reader = run.writer(acks=1), run.reader()
    a, b = run.send(writer, at=0), run.send(writer, at=1)
    run.poll(reader, (0, a), (1, b))
    run.final((0, a))


@history()
def nothing_lost_with_acks_one_while_the_leader_stayed(run: Run) -> None:
    run.watched(4)
    run.final((0, run.send(run.writer(acks=1), at=0)))


@history(says="acks=0 asks for no acknowledgement", no_lost_acks="permitted")
def lost_with_acks_zero(run: Run) -> None:
    run.watched(4)
    writer = run.writer(acks=0)
    a, _ = run.send(writer), run.send(writer)
    run.final((0, a))


@history(says="though acks=0 asks for no acknowledgement", no_lost_acks="not-applicable")
def nothing_lost_with_acks_zero(run: Run) -> None:
    run.final((0, run.send(run.writer(acks=0))))


@history(no_lost_acks="violated")
def lost_with_acks_one_and_with_acks_all(run: Run) -> None:
    one, all_ = run.writer(acks=1), run.writer()
    _, _, c = run.send(one, at=0), run.send(all_, at=1), run.send(all_, at=2)
    run.final((2, c))


def _lost_with_acks_all(run: Run) -> None:
    writer = run.writer()
    a, _ = run.send(writer, at=0), run.send(writer, at=1)
    run.final((0, a))


UNCLEAN = {"unclean.leader.election.enable": "true"}


@history(
    says="unclean.leader.election.enable lets a replica be elected",
    no_lost_acks="permitted",
    one_value_per_offset="not-applicable",
    no_duplicates="not-applicable",
)
def lost_with_acks_all_where_unclean_elections_are_allowed(run: Run) -> None:
    run.plan(config=UNCLEAN)
    run.watched(0, 1)
    _lost_with_acks_all(run)


@history(no_lost_acks="violated")
def lost_with_acks_all_where_an_unclean_election_was_allowed_and_none_happened(run: Run) -> None:
    run.plan(config=UNCLEAN)
    run.watched(1, 1)
    _lost_with_acks_all(run)


@history(no_lost_acks="violated")
def lost_with_acks_all_after_a_clean_election(run: Run) -> None:
    run.plan()
    run.watched(0, 1)
    _lost_with_acks_all(run)


@history(no_lost_acks="permitted", one_value_per_offset="not-applicable", no_duplicates="not-applicable")
def lost_with_acks_all_where_the_brokers_allow_unclean_elections(run: Run) -> None:
    run.plan()
    run.spec(kafka="3.9.2", mode="zk", overrides=UNCLEAN)
    run.watched(0, 1)
    _lost_with_acks_all(run)


@history(no_lost_acks="violated")
def lost_with_acks_all_where_the_topic_forbids_what_the_brokers_allow(run: Run) -> None:
    run.plan(config={"unclean.leader.election.enable": "false"})
    run.spec(kafka="3.9.2", mode="zk", overrides=UNCLEAN)
    run.watched(0, 1)
    _lost_with_acks_all(run)


def _unclean_by(run: Run, mode: str, **overrides: dict[str, str]) -> None:
    """An election after which records with acks=all are lost, where nodes have settings of their own."""
    run.plan()
    nodes = {f"{name[:-1]}-{name[-1]}": settings for name, settings in overrides.items()}
    run.spec(kafka="3.9.2", mode=mode, node_overrides=nodes)
    run.watched(0, 1)
    _lost_with_acks_all(run)


@history(no_lost_acks="permitted", one_value_per_offset="not-applicable", no_duplicates="not-applicable")
def lost_with_acks_all_where_a_broker_that_may_be_the_controller_allows_unclean_elections(run: Run) -> None:
    _unclean_by(run, "zk", broker2=UNCLEAN)


@history(no_lost_acks="permitted", one_value_per_offset="not-applicable", no_duplicates="not-applicable")
def lost_with_acks_all_where_a_controller_allows_unclean_elections(run: Run) -> None:
    _unclean_by(run, "kraft", broker1={"unclean.leader.election.enable": "false"}, controller1=UNCLEAN)


@history(no_lost_acks="violated")
def lost_with_acks_all_where_only_a_broker_that_elects_nobody_allows_unclean_elections(run: Run) -> None:
    _unclean_by(run, "kraft", broker1=UNCLEAN)


@history(no_lost_acks="permitted", one_value_per_offset="not-applicable", no_duplicates="not-applicable")
def lost_with_acks_all_where_unclean_elections_are_allowed_in_capitals(run: Run) -> None:
    run.plan(config={"unclean.leader.election.enable": "TRUE"})
    run.watched(0, 1)
    _lost_with_acks_all(run)


@history(no_lost_acks="violated")
def lost_with_acks_all_where_unclean_elections_are_forbidden_in_capitals(run: Run) -> None:
    run.plan(config={"unclean.leader.election.enable": "FALSE"})
    run.spec(kafka="3.9.2", mode="zk", overrides=UNCLEAN)
    run.watched(0, 1)
    _lost_with_acks_all(run)


@history(
    says="it did not happen, though unclean",
    no_lost_acks="not-applicable",
    one_value_per_offset="not-applicable",
    no_duplicates="not-applicable",
)
def nothing_lost_where_unclean_elections_are_allowed(run: Run) -> None:
    run.plan(config=UNCLEAN)
    run.watched(0, 1)
    run.final((0, run.send(run.writer(), at=0)))


def _two_crashes(run: Run, *, at_once: bool) -> None:
    run.fault(100, 300, step=1, broker="broker-1")
    run.fault(200 if at_once else 301, 400, step=2, broker="broker-2")
    _lost_with_acks_all(run)


@history(
    says="brokers are down uncleanly, and 2 were at once",
    no_lost_acks="permitted",
    one_value_per_offset="not-applicable",
    no_duplicates="not-applicable",
)
def lost_with_as_many_crashes_at_once_as_eligible_leaders_can_bear(run: Run) -> None:
    run.plan()
    run.spec(kafka="4.3.1", mode="kraft")
    _two_crashes(run, at_once=True)


@history(no_lost_acks="violated")
def lost_with_as_many_crashes_one_after_the_other(run: Run) -> None:
    run.plan()
    run.spec(kafka="4.3.1", mode="kraft")
    _two_crashes(run, at_once=False)


@history(no_lost_acks="violated")
def lost_with_fewer_crashes_than_the_topic_bears(run: Run) -> None:
    run.plan(config={"min.insync.replicas": "3"})
    run.spec(kafka="4.3.1", mode="kraft")
    _two_crashes(run, at_once=True)


@history(no_lost_acks="violated")
def lost_with_crashes_and_without_eligible_leader_replicas(run: Run) -> None:
    run.plan()
    run.spec(kafka="4.3.1", mode="kraft", features={"eligible.leader.replicas.version": 0})
    _two_crashes(run, at_once=True)


@history(
    says="promises 2 copies, and 2 at once lost the end of their logs",
    no_lost_acks="permitted",
    one_value_per_offset="not-applicable",
    no_duplicates="not-applicable",
)
def lost_where_every_promised_copy_lost_its_end(run: Run) -> None:
    run.plan()
    run.fault(100, 300, step=1, broker="broker-1", lossy=["broker-1"])
    run.fault(200, 400, step=2, broker="broker-2", lossy=["broker-2"])
    _lost_with_acks_all(run)


@history(no_lost_acks="violated")
def lost_where_one_of_the_promised_copies_kept_its_end(run: Run) -> None:
    run.plan()
    run.watched(0, 1, isr=(1, 3))
    run.fault(100, 300, step=1, broker="broker-1", lossy=["broker-1"])
    run.fault(301, 400, step=2, broker="broker-2", lossy=["broker-2"])
    _lost_with_acks_all(run)


@history(
    says="such a one may lead again",
    no_lost_acks="permitted",
    one_value_per_offset="not-applicable",
    no_duplicates="not-applicable",
)
def lost_where_the_last_of_the_isr_lost_its_end(run: Run) -> None:
    run.plan()
    run.spec(kafka="3.9.2", mode="kraft")
    run.watched(0, 1, isr=(1,))
    run.fault(100, 300, broker="broker-1", lossy=["broker-1"])
    _lost_with_acks_all(run)


@history(no_lost_acks="violated")
def lost_where_another_than_the_last_of_the_isr_lost_its_end(run: Run) -> None:
    run.plan()
    run.spec(kafka="3.9.2", mode="kraft")
    run.watched(0, 1, isr=(2,))
    run.fault(100, 300, broker="broker-1", lossy=["broker-1"])
    _lost_with_acks_all(run)


@history(no_lost_acks="violated")
def lost_where_the_last_of_an_earlier_isr_lost_its_end(run: Run) -> None:
    run.plan()
    run.spec(kafka="3.9.2", mode="kraft")
    run.watched(0, isr=(1,))
    run.watched(1, isr=(1, 2))
    run.fault(100, 300, broker="broker-1", lossy=["broker-1"])
    _lost_with_acks_all(run)


@history(no_lost_acks="violated")
def lost_where_the_last_of_the_isr_lost_its_end_and_others_are_eligible(run: Run) -> None:
    run.plan()
    run.spec(kafka="4.3.1", mode="kraft")
    run.watched(0, 1, isr=(1,))
    run.fault(100, 300, broker="broker-1", lossy=["broker-1"])
    _lost_with_acks_all(run)


@history(
    says="a replica was elected on request",
    no_lost_acks="permitted",
    one_value_per_offset="not-applicable",
    no_duplicates="not-applicable",
)
def lost_after_an_unclean_election_that_was_asked_for(run: Run) -> None:
    run.plan()
    run.fault(100, 300, elected_uncleanly=["orders-0"])
    _lost_with_acks_all(run)


@history(no_lost_acks="violated")
def lost_after_an_unclean_election_of_another_partition(run: Run) -> None:
    run.plan()
    run.fault(100, 300, elected_uncleanly=["orders-1"])
    _lost_with_acks_all(run)


@history(no_lost_acks="violated")
def lost_with_crashes_of_controllers(run: Run) -> None:
    run.plan()
    run.spec(kafka="4.3.1", mode="kraft")
    run.fault(100, 300, step=1, broker="controller-101")
    run.fault(200, 400, step=2, broker="controller-102")
    _lost_with_acks_all(run)


@history(no_lost_acks="violated")
def lost_with_crashes_before_there_were_eligible_leader_replicas(run: Run) -> None:
    run.plan()
    run.spec(kafka="4.0.2", mode="kraft")
    _two_crashes(run, at_once=True)


@history(no_lost_acks="permitted", one_value_per_offset="not-applicable", no_duplicates="not-applicable")
def lost_with_crashes_where_eligible_leader_replicas_were_asked_for(run: Run) -> None:
    run.plan()
    run.spec(kafka="4.0.2", mode="kraft", features={"eligible.leader.replicas.version": 1})
    _two_crashes(run, at_once=True)


@history(no_lost_acks="violated")
def lost_with_crashes_where_one_node_is_older_than_eligible_leader_replicas(run: Run) -> None:
    run.plan()
    run.spec(kafka="4.3.1", mode="kraft", node_kafka={"broker-1": "4.0.2", "broker-2": "4.1.2"})
    _two_crashes(run, at_once=True)


@history(no_lost_acks="permitted", one_value_per_offset="not-applicable", no_duplicates="not-applicable")
def lost_with_crashes_where_the_oldest_node_has_eligible_leader_replicas(run: Run) -> None:
    run.plan()
    run.spec(kafka="4.3.1", mode="kraft", node_kafka={"broker-1": "4.1.2"})
    _two_crashes(run, at_once=True)


@history(no_lost_acks="not-applicable")
def nothing_lost_with_acks_one(run: Run) -> None:
    a = run.send(run.writer(acks=1), at=0)
    run.final((0, a))


@history(no_lost_acks="undecided")
def lost_and_nobody_knows_what_was_promised(run: Run) -> None:
    writer = run.writer(acks=None)
    a, _ = run.send(writer, at=0), run.send(writer, at=1)
    run.final((0, a))


@history()
def acknowledged_without_an_offset(run: Run) -> None:
    a = run.send(run.writer())
    run.final((0, a))


@history(says="orders-0 at an unknown offset", no_lost_acks="violated")
def acknowledged_without_an_offset_and_lost(run: Run) -> None:
    writer = run.writer()
    a, _ = run.send(writer, at=0), run.send(writer)
    run.final((0, a))


@history(no_lost_acks="undecided")
def acknowledged_without_an_offset_and_maybe_deleted(run: Run) -> None:
    writer = run.writer()
    a, _ = run.send(writer, at=1), run.send(writer)
    run.final((1, a), start=1)


@history()
def unknown_and_not_there(run: Run) -> None:
    writer = run.writer()
    a, _, _ = run.send(writer, at=0), run.send(writer, outcome=Outcome.UNKNOWN), run.send(writer, outcome=None)
    run.final((0, a))


# one-value-per-offset


@history(
    says="orders-0 offset 0: value w1#1 (op 3) and value w1#0 (op 1) are both there", one_value_per_offset="violated"
)
def two_values_at_one_offset(run: Run) -> None:
    writer, reader = run.writer(), run.reader()
    a, b = run.send(writer, at=0), run.send(writer, outcome=Outcome.UNKNOWN)
    run.poll(reader, (0, b))
    run.final((0, a))


@history()
def the_same_value_for_everybody(run: Run) -> None:
    writer, reader = run.writer(), run.reader()
    a, b = run.send(writer, at=0), run.send(writer, outcome=Outcome.UNKNOWN)
    run.poll(reader, (0, a))
    run.final((0, a), (1, b))


@history(
    says="acknowledged there to writer 1 (op 1) and was read only at orders-0 offset 1", one_value_per_offset="violated"
)
def acknowledged_at_one_offset_and_read_at_another(run: Run) -> None:
    a = run.send(run.writer(), at=0)
    run.final((1, a))


@history(no_lost_acks="undecided", no_duplicates="permitted")
def the_acknowledged_copy_was_not_reached_yet(run: Run) -> None:
    writer, reader = run.writer(idempotent=False), run.reader()
    a = run.send(writer, at=1)
    run.poll(reader, (0, a))


@history(no_lost_acks="permitted", one_value_per_offset="permitted")
def overwritten_with_acks_one(run: Run) -> None:
    writer = run.writer(acks=1)
    _, b = run.send(writer, at=0), run.send(writer, at=0)
    run.final((0, b))


@history(says="w2#0", one_value_per_offset="violated", no_lost_acks="permitted")
def three_values_at_one_offset_two_of_them_firm(run: Run) -> None:
    weak, strong, reader = run.writer(acks=1), run.writer(), run.reader()
    run.send(weak, at=0)
    b, c = run.send(strong, at=0), run.send(strong, outcome=Outcome.UNKNOWN)
    run.poll(reader, (0, c))
    run.final((0, b))


@history(no_lost_acks="permitted", one_value_per_offset="permitted", no_duplicates="not-applicable")
def read_and_overwritten_where_unclean_elections_are_allowed(run: Run) -> None:
    run.plan(config=UNCLEAN)
    run.watched(0, 1)
    writer, reader = run.writer(), run.reader()
    a, b = run.send(writer, at=0), run.send(writer, outcome=Outcome.UNKNOWN)
    run.poll(reader, (0, a))
    run.final((0, b))


@history(no_lost_acks="violated", one_value_per_offset="violated")
def read_and_overwritten_after_a_clean_election(run: Run) -> None:
    run.plan()
    run.watched(0, 1)
    writer, reader = run.writer(), run.reader()
    a, b = run.send(writer, at=0), run.send(writer, outcome=Outcome.UNKNOWN)
    run.poll(reader, (0, a))
    run.final((0, b))


@history(no_lost_acks="violated", one_value_per_offset="violated")
def overwritten_with_acks_one_although_the_leader_stayed(run: Run) -> None:
    run.watched(3)
    writer = run.writer(acks=1)
    _, b = run.send(writer, at=0), run.send(writer, at=0)
    run.final((0, b))


# no-duplicates


NOTHING_STAYS = {"no_lost_acks": "not-applicable", "one_value_per_offset": "not-applicable"}


@history(
    says="orders-0 offset 0: value w1#0 is there (op 1) and also at orders-0 offset 1 (op 2)", no_duplicates="violated"
)
def one_value_at_two_offsets(run: Run) -> None:
    a = run.send(run.writer(), at=0)
    run.final((0, a), (1, a))


@history()
def two_values_at_two_offsets(run: Run) -> None:
    writer = run.writer()
    a, b = run.send(writer, at=0), run.send(writer, at=1)
    run.final((0, a), (1, b))


@history(says="orders-1 offset 0", no_duplicates="violated")
def one_value_in_two_partitions(run: Run) -> None:
    a = run.send(run.writer(), at=0)
    run.final((0, a))
    run.final((0, a), partition=1)


@history(says="only idempotent writers", no_duplicates="permitted")
def a_retry_without_idempotence(run: Run) -> None:
    a = run.send(run.writer(idempotent=False), at=1)
    run.final((0, a), (1, a))


@history(no_duplicates="not-applicable")
def no_retry_without_idempotence(run: Run) -> None:
    a = run.send(run.writer(idempotent=False), at=0)
    run.final((0, a))


@history(no_duplicates="undecided")
def a_duplicate_and_nobody_knows_what_was_promised(run: Run) -> None:
    a = run.send(run.writer(idempotent=None), at=0)
    run.final((0, a), (1, a))


@history(says="may itself send again what is unanswered", no_duplicates="permitted")
def sent_again_by_a_client_that_gave_up_another_record(run: Run) -> None:
    writer = run.writer()
    run.send(writer, outcome=Outcome.UNKNOWN, during=(10, 40))
    a = run.send(writer, at=1, during=(20, 60))
    run.final((0, a), (1, a))


@history(no_duplicates="permitted")
def sent_again_by_a_client_that_gave_up_one_of_several(run: Run) -> None:
    writer = run.writer()
    run.send(writer, outcome=Outcome.UNKNOWN, during=(10, 20))
    run.send(writer, outcome=None, during=(30, 40))
    a = run.send(writer, at=1, during=(50, 60))
    run.final((0, a), (1, a))


@history(no_duplicates="permitted")
def sent_again_until_it_was_given_up_itself_with_others(run: Run) -> None:
    writer = run.writer()
    b = run.send(writer, at=0)
    run.send(writer, outcome=Outcome.UNKNOWN, during=(30, 60))
    a = run.send(writer, outcome=Outcome.UNKNOWN, during=(40, 70))
    run.final((0, b), (1, a), (2, a))


@history(no_duplicates="violated")
def twice_although_only_another_client_gave_up_a_record(run: Run) -> None:
    writer = run.writer()
    run.send(run.writer(), outcome=Outcome.UNKNOWN, during=(10, 40))
    a = run.send(writer, at=1, during=(20, 60))
    run.final((0, a), (1, a))


@history(no_duplicates="violated")
def twice_although_the_client_gave_up_no_record_at_that_time(run: Run) -> None:
    writer = run.writer()
    run.send(writer, outcome=Outcome.UNKNOWN, during=(10, 20))
    a = run.send(writer, at=1, during=(30, 40))
    run.send(writer, outcome=Outcome.UNKNOWN, during=(50, 60))
    run.final((0, a), (1, a))


@history(no_duplicates="violated")
def twice_although_the_client_gave_up_nothing_else(run: Run) -> None:
    writer = run.writer()
    b, a = run.send(writer, at=0), run.send(writer, outcome=Outcome.UNKNOWN)
    run.final((0, b), (1, a), (2, a))


@history(no_duplicates="violated")
def in_two_partitions_although_the_client_gave_up_another_record(run: Run) -> None:
    writer = run.writer()
    run.send(writer, outcome=Outcome.UNKNOWN, during=(10, 40))
    a = run.send(writer, at=0, during=(20, 60))
    run.final((0, a))
    run.final((0, a), partition=1)


def _read_lost_and_sent_again(run: Run) -> None:
    writer, reader = run.writer(), run.reader()
    a = run.send(writer, at=0)
    b = run.send(writer, at=1)
    run.poll(reader, (0, a), (2, b))
    run.final((0, a), (1, b))


@history(says="unclean.leader.election.enable", no_duplicates="permitted", **NOTHING_STAYS)
def read_lost_in_an_unclean_election_and_sent_again(run: Run) -> None:
    run.plan(config=UNCLEAN)
    run.watched(0, 1)
    _read_lost_and_sent_again(run)


@history(says="brokers are down uncleanly", no_duplicates="permitted", **NOTHING_STAYS)
def read_lost_with_more_crashes_than_eligible_leaders_can_bear_and_sent_again(run: Run) -> None:
    run.plan()
    run.spec(kafka="4.3.1", mode="kraft")
    run.fault(100, 300, step=1, broker="broker-1")
    run.fault(200, 400, step=2, broker="broker-2")
    _read_lost_and_sent_again(run)


@history(no_duplicates="violated")
def read_lost_after_a_clean_election_and_sent_again(run: Run) -> None:
    run.plan()
    run.watched(0, 1)
    _read_lost_and_sent_again(run)


@history(no_duplicates="violated", **NOTHING_STAYS)
def twice_in_a_log_that_did_not_lose_it_in_an_unclean_election(run: Run) -> None:
    run.plan(config=UNCLEAN)
    run.watched(0, 1)
    a = run.send(run.writer(), at=0)
    run.final((0, a), (1, a))


@history()
def one_value_read_by_many(run: Run) -> None:
    writer, one, other = run.writer(), run.reader(), run.reader()
    a = run.send(writer, at=0)
    run.poll(one, (0, a))
    run.poll(other, (0, a))
    run.final((0, a))


# no-phantoms


@history(says="orders-0 offset 1: value w1#9 was read (op 2) and never sent", no_phantoms="violated")
def read_and_never_sent(run: Run) -> None:
    writer = run.writer()
    a = run.send(writer, at=0)
    run.final((0, a), (1, value_id(writer, 9)))


@history(says="certainly failed (op 2)", no_phantoms="violated")
def read_although_it_failed(run: Run) -> None:
    writer = run.writer()
    a, b = run.send(writer, at=0), run.send(writer, outcome=Outcome.FAIL)
    run.final((0, a), (1, b))


@history()
def read_although_nobody_knew(run: Run) -> None:
    writer = run.writer()
    a, b, c = run.send(writer, at=0), run.send(writer, outcome=Outcome.UNKNOWN), run.send(writer, outcome=None)
    run.final((0, a), (1, b), (2, c))


@history(says="not one of this run's values", no_phantoms="violated")
def foreign_bytes(run: Run) -> None:
    a = run.send(run.writer(), at=0)
    run.final((0, a), (1, None), (2, None))


@history(says="value of foreign bytes", no_phantoms="violated", one_value_per_offset="violated")
def foreign_bytes_where_something_was_acknowledged(run: Run) -> None:
    writer, reader = run.writer(), run.reader()
    a = run.send(writer, at=0)
    run.poll(reader, (0, None))
    run.final((0, a))


@crashed(says="did not get to write down", no_phantoms="undecided", no_lost_acks="undecided")
def beyond_what_a_crashed_recorder_wrote(run: Run) -> None:
    writer, reader = run.writer(), run.reader()
    a = run.send(writer, at=0)
    run.poll(reader, (0, a), (1, value_id(writer, 1)))


@crashed(says="never sent", no_phantoms="violated", no_lost_acks="undecided")
def not_beyond_what_a_crashed_recorder_wrote(run: Run) -> None:
    writer, reader = run.writer(), run.reader()
    a = run.send(writer, at=0)
    run.poll(reader, (0, a), (1, value_id(reader + 1, 0)))


# real-time-order


@history(
    says="orders-0 offset 0: value w1#1 was sent (op 2) after value w1#0 had been acknowledged at offset 1 (op 1),"
    " and yet comes before it",
    real_time_order="violated",
)
def sent_later_and_placed_before(run: Run) -> None:
    writer = run.writer()
    a, b = run.send(writer, at=1), run.send(writer, at=0)
    run.final((0, b), (1, a))


@history()
def sent_at_the_same_time_and_placed_before(run: Run) -> None:
    writer = run.writer()
    a, b = run.send(writer, at=1, during=(1, 5)), run.send(writer, at=0, during=(5, 9))
    run.final((0, b), (1, a))


@history(says="value w1#1 was sent (op 2)", real_time_order="violated")
def sent_later_without_an_answer_and_placed_before(run: Run) -> None:
    writer = run.writer()
    a, b = run.send(writer, at=1), run.send(writer, outcome=Outcome.UNKNOWN)
    run.final((0, b), (1, a))


@history()
def sent_later_to_another_partition(run: Run) -> None:
    writer = run.writer()
    a, b, c = run.send(writer, at=0), run.send(writer, at=1), run.send(writer, at=0, partition=1)
    run.final((0, a), (1, b))
    run.final((0, c), partition=1)


@history(no_duplicates="permitted")
def a_late_duplicate_may_follow(run: Run) -> None:
    writer = run.writer(idempotent=False)
    a, b = run.send(writer, at=0), run.send(writer, at=1)
    run.final((0, a), (1, b), (2, a))


@history(no_lost_acks="permitted")
def what_did_not_survive_has_no_order(run: Run) -> None:
    writer = run.writer(acks=1)
    _, b = run.send(writer, at=1), run.send(writer, at=0)
    run.final((0, b))


@history()
def an_acknowledgement_without_offset_has_no_order(run: Run) -> None:
    writer = run.writer()
    a, b = run.send(writer), run.send(writer, at=0)
    run.final((0, b), (1, a))


@history(no_lost_acks="undecided", one_value_per_offset="violated")
def two_values_at_one_offset_are_not_out_of_order(run: Run) -> None:
    writer, reader = run.writer(), run.reader()
    _, b = run.send(writer, at=0), run.send(writer, outcome=Outcome.UNKNOWN)
    run.poll(reader, (0, b))


# monotonic-reads


@history(
    says="orders-0 offset 0: process 2 read it (op 4) after it had read up to offset 1 (op 3)",
    monotonic_reads="violated",
)
def a_poll_that_goes_back(run: Run) -> None:
    writer, reader = run.writer(), run.reader()
    a, b = run.send(writer, at=0), run.send(writer, at=1)
    run.poll(reader, (0, a), (1, b))
    run.poll(reader, (0, a))
    run.final((0, a), (1, b))


@history()
def polls_that_go_on(run: Run) -> None:
    writer, reader = run.writer(), run.reader()
    a, b = run.send(writer, at=0), run.send(writer, at=1)
    run.poll(reader, (0, a))
    run.poll(reader, (1, b))
    run.poll(reader)
    run.final((0, a), (1, b))


@history()
def going_back_after_an_assignment(run: Run) -> None:
    writer, reader = run.writer(), run.reader()
    a = run.send(writer, at=0)
    run.poll(reader, (0, a))
    run.assign(reader)
    run.poll(reader, (0, a))
    run.assign(reader, "seek")
    run.poll(reader, (0, a))
    run.final((0, a))


@history(monotonic_reads="violated")
def going_back_after_the_assignment_of_somebody_else(run: Run) -> None:
    writer, reader, other = run.writer(), run.reader(), run.reader()
    a = run.send(writer, at=0)
    run.poll(reader, (0, a))
    run.assign(other)
    run.poll(reader, (0, a))
    run.final((0, a))


def _gappy(run: Run, *offsets: int) -> None:
    """A log with holes (as transactions leave them), read in one poll in the given order, then properly."""
    writer, reader = run.writer(), run.reader()
    values = {offset: run.send(writer, at=offset) for offset in sorted(offsets)}
    run.poll(reader, *((offset, values[offset]) for offset in offsets))
    run.final(*values.items())


@history()
def holes_within_a_poll(run: Run) -> None:
    _gappy(run, 5, 7, 8, 12)


@history(says="orders-0 offset 7: process 2 read it after offset 8 in the same poll (op 5)", monotonic_reads="violated")
def going_back_within_a_poll_with_holes(run: Run) -> None:
    _gappy(run, 5, 8, 7, 12)


@history(says="in the same poll", monotonic_reads="violated")
def the_same_offset_twice_in_a_poll(run: Run) -> None:
    writer, reader = run.writer(), run.reader()
    a = run.send(writer, at=0)
    run.poll(reader, (0, a), (0, a))
    run.final((0, a))


# nothing to judge


@history(says="no write was acknowledged", **{name.replace("-", "_"): "undecided" for name in ALL})
def nothing_happened(run: Run) -> None:
    pass


@history(
    says="no write was acknowledged",
    no_lost_acks="undecided",
    one_value_per_offset="undecided",
    real_time_order="undecided",
)
def nothing_was_acknowledged(run: Run) -> None:
    a = run.send(run.writer(), outcome=Outcome.UNKNOWN)
    run.final((0, a))


@history(
    says="nothing was read",
    no_lost_acks="undecided",
    one_value_per_offset="undecided",
    no_duplicates="undecided",
    no_phantoms="undecided",
    monotonic_reads="undecided",
)
def nothing_was_read(run: Run) -> None:
    run.send(run.writer(), at=0)


# torn lines


def _tear(directory: Path, table: str) -> None:
    path = directory / "history" / f"{table}.jsonl"
    path.write_bytes(path.read_bytes()[:-4])


def _torn_after(write: Callable[[Run], None], table: str) -> Build:
    def build(directory: Path) -> None:
        run = Run(directory)
        write(run)
        run.crash()
        _tear(directory, table)

    return build


def _two_of_two(run: Run) -> None:
    writer = run.writer()
    a, b = run.send(writer, at=0), run.send(writer, at=1)
    run.final((0, a), (1, b))


def _out_of_order(run: Run) -> None:
    writer, reader = run.writer(), run.reader()
    a, b = run.send(writer, at=1), run.send(writer, at=0)
    run.poll(reader, (0, b), (1, a))
    run.final((0, b), (1, a))


_add(
    "a_torn_read_may_be_what_seems_lost",
    _torn_after(_two_of_two, "records"),
    "the recorder died in the middle of a line (records.jsonl)",
    {name.replace("-", "_"): "undecided" for name in ALL},
)
_add(
    "what_was_seen_before_the_torn_line_stays_true",
    _torn_after(_out_of_order, "records"),
    "and yet comes before it",
    {name.replace("-", "_"): "undecided" for name in ALL} | {"real_time_order": "violated"},
)
_add(
    "a_torn_observation_proves_nothing",
    _torn_after(_two_of_two, "observations"),
    "not read to their ends",
    {"no_lost_acks": "undecided"},
)


# the bundled sample, damaged


def _table(history: Path, table: str) -> pa.Table:
    return pq.read_table(history / f"{table}.parquet")


def _rewrite(history: Path, table: str, rows: pa.Table) -> None:
    pq.write_table(rows.cast(SEALED[table]), history / f"{table}.parquet", compression="zstd")


def _replace_at(rows: pa.Table, column: str, partition: int, changes: dict[int, int]) -> pa.Table:
    """Change a column where partition and offset match."""
    listed = rows.to_pylist()
    for row in listed:
        if row["partition"] == partition and row["offset"] in changes:
            row[column] = changes[row["offset"]]
    return pa.Table.from_pylist(listed, schema=rows.schema)


DAMAGED_PARTITION, DAMAGED_OFFSET = 0, 32


@damage("orders-0 offset 32: value w", no_lost_acks="violated")
def an_acknowledged_record_removed_by_hand(history: Path) -> None:
    rows = _table(history, "records-read")
    here = pc.and_(
        pc.equal(rows["partition"], pa.scalar(DAMAGED_PARTITION, pa.int32())),
        pc.equal(rows["offset"], pa.scalar(DAMAGED_OFFSET, pa.int64())),
    )
    _rewrite(history, "records-read", rows.filter(pc.invert(here)))


@damage("and yet comes before it", real_time_order="violated")
def two_offsets_swapped_against_real_time(history: Path) -> None:
    early, late = 3, 200
    for table in ("records-sent", "records-read"):
        rows = _table(history, table)
        _rewrite(
            history,
            table,
            _swap_values(rows, early, late) if table == "records-read" else _swap_offsets(rows, early, late),
        )


def _swap_offsets(rows: pa.Table, one: int, other: int) -> pa.Table:
    return _replace_at(rows, "offset", DAMAGED_PARTITION, {one: other, other: one})


def _swap_values(rows: pa.Table, one: int, other: int) -> pa.Table:
    at = {row["offset"]: row["value"] for row in rows.to_pylist() if row["partition"] == DAMAGED_PARTITION}
    return _replace_at(rows, "value", DAMAGED_PARTITION, {one: at[other], other: at[one]})


@damage("orders-0 offset 32", one_value_per_offset="violated", no_phantoms="violated", no_lost_acks="violated")
def a_value_changed(history: Path) -> None:
    rows = _table(history, "records-read")
    _rewrite(
        history, "records-read", _replace_at(rows, "value", DAMAGED_PARTITION, {DAMAGED_OFFSET: value_id(1, 9999)})
    )


@damage()
def not_damaged_at_all(history: Path) -> None:
    pass


@damage()
def without_run_json(history: Path) -> None:
    (history.parent / "run.json").unlink()


# evidence


@history(no_lost_acks="violated")
def more_anomalies_than_are_shown(run: Run) -> None:
    writer = run.writer()
    for offset in range(25):
        run.send(writer, at=offset)
    run.final((25, run.send(writer, at=25)))


@history(no_lost_acks="violated")
def lost_during_a_fault_and_after_it(run: Run) -> None:
    writer = run.writer()
    run.send(writer, at=0, during=(100, 200))
    run.send(writer, at=1, during=(400, 500))
    run.fault(150, 300)
    run.final((2, run.send(writer, at=2, during=(600, 700))))


@history(no_lost_acks="violated")
def lost_during_a_fault_that_nobody_healed(run: Run) -> None:
    writer = run.writer()
    run.send(writer, at=0, during=(100, 200))
    run.fault(50, None)
    run.final((1, run.send(writer, at=1, during=(600, 700))))


@history()
def a_fault_that_did_not_bite(run: Run) -> None:
    run.fault(5, 400, proven=False)
    run.final((0, run.send(run.writer(), at=0)))


@history(monotonic_reads="violated")
def backwards_across_polls_and_within_one(run: Run) -> None:
    writer, reader = run.writer(), run.reader()
    values = [run.send(writer, at=offset) for offset in range(4)]
    run.poll(reader, (0, values[0]), (1, values[1]))
    run.poll(reader, (1, values[1]))
    run.poll(reader, (3, values[3]), (2, values[2]))
    run.final(*enumerate(values))


# expectations


@history(no_lost_acks="permitted")
def a_control_that_fired(run: Run) -> None:
    run.plan(expect={LOST: "permitted", PHANTOMS: "held"})
    _lost_with_acks_one(run)


@history(no_lost_acks="not-applicable")
def a_control_that_did_not_fire(run: Run) -> None:
    run.plan(expect={LOST: "permitted", PHANTOMS: "held"})
    run.final((0, run.send(run.writer(acks=1), at=0)))


@history(no_lost_acks="violated")
def a_violation_where_something_else_was_expected(run: Run) -> None:
    run.plan(expect={LOST: "permitted"})
    _lost_with_acks_all(run)
