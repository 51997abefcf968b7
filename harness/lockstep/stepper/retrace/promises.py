"""Promises: the invariants that counterexamples violate, checked on the events of a walk.

Only events are needed, no cluster. A violation is found only where it was observed: a record counts as committed when
some replica's high watermark was observed above it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from lockstep.stepper.model.client_requests import FetchResponse
from lockstep.stepper.model.events import Began, Decided, Events, Exchanged, RequestSent, ResponseArrived
from lockstep_model.controller import Controller
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.partition.fetch import Fetch, Isolation
from lockstep_model.partition.log import Epoch
from lockstep_model.partition.produce import Acks, Produce, Produced
from lockstep_model.registration import BrokerId
from lockstep_model.replication import invariants
from lockstep_model.replication.state import Metadata

CALLED = {
    "strong-isr": invariants.LEADER_CANDIDATE_COMPLETENESS,
    "weak-isr": invariants.LEADER_CANDIDATE_COMPLETENESS,
    "log-mismatch": invariants.COMMITTED_READS_STABLE,
    invariants.LOG_MATCHING: invariants.COMMITTED_READS_STABLE,
}
"""Our name of an invariant of the published specification, or of the nearest one that can be observed."""
UNSEEN = frozenset({invariants.ONLY_ELIGIBLE_ASKED_FOR})
"""Invariants that cannot be observed: an AlterPartition request is not, only the ISR that the controller grants."""


class Broken(NamedTuple):
    """A violated invariant, and the observation that shows it."""

    promise: str
    evidence: str


class _Look(NamedTuple):
    """An observation of a replica's whole log and its high watermark."""

    at: int
    """Index of the event."""
    broker: BrokerId
    records: tuple[tuple[Epoch, int], ...]
    high_watermark: int
    controller: Controller
    """The controller's state as last observed before."""
    next: Controller
    """The controller's next observed state, which it may have had already."""

    @property
    def candidate(self) -> bool:
        """Whether the replica certainly was in ISR or ELR, and so could be elected."""
        return all(self.broker in known.partition.isr | known.partition.elr for known in (self.controller, self.next))

    @property
    def leads(self) -> bool:
        return all(self.broker == known.partition.leader for known in (self.controller, self.next))

    @property
    def term(self) -> tuple[BrokerId, int]:
        return self.broker, self.controller.partition.leader_epoch


def broken(events: Sequence[Events], parameters: Parameters) -> list[Broken]:
    """The invariants that a cluster was observed to violate, invariant by invariant."""
    looks = list(_looks(events))
    return [
        *_of_controller(events, parameters),
        *_of_committed(looks),
        *_of_high_watermarks(looks),
        *_of_small_isrs(events, looks, parameters),
        *_of_acknowledged(events, looks),
    ]


def _decisions(events: Sequence[Events]) -> Iterator[tuple[int, Controller]]:
    for at, event in enumerate(events):
        if isinstance(event, Began | Decided):
            yield at, event.controller


def _looks(events: Sequence[Events]) -> Iterator[_Look]:
    decisions = list(_decisions(events))
    for at, event in enumerate(events):
        if not isinstance(event, Exchanged):
            continue
        request, reply = event.request.back(), event.reply.back()
        whole = isinstance(request, Fetch) and request.isolation is Isolation.LOG_END and request.offset == 0
        if whole and isinstance(reply, FetchResponse) and reply.error is Error.NONE:
            before = [controller for when, controller in decisions if when < at][-1]
            after = next((controller for when, controller in decisions if when > at), before)
            yield _Look(at, event.broker, reply.records, reply.high_watermark, before, after)


def _of_controller(events: Sequence[Events], parameters: Parameters) -> Iterator[Broken]:
    """Invariants of the controller's state: leader in ISR, no fenced broker in the ISR (KRaft), monotone epochs."""
    before: Metadata | None = None
    for _, controller in _decisions(events):
        now = Metadata(log=(controller,), known=())
        said = f"the controller knows {controller.partition}"
        if not invariants.leader_in_isr(now):
            yield Broken(invariants.LEADER_IN_ISR, said)
        if parameters.mode is Mode.KRAFT and not invariants.no_fenced_in_isr(now):
            yield Broken(invariants.NO_FENCED_IN_ISR, said)
        if before is not None and not invariants.epochs_monotone(before, now):
            yield Broken(invariants.EPOCHS_MONOTONE, f"{said}, after {before.controller.partition}")
        before = now


def _of_committed(looks: Sequence[_Look]) -> Iterator[Broken]:
    """Committed records stay the same, and every replica that could be elected has them."""
    committed: tuple[tuple[Epoch, int], ...] = ()
    for look in looks:
        seen = look.records[: look.high_watermark]
        both = min(len(seen), len(committed))
        if seen[:both] != committed[:both]:
            yield Broken(
                invariants.COMMITTED_READS_STABLE, f"{look.broker} has {seen}, where {committed} was committed"
            )
        committed = max(committed, seen, key=len)
        if look.records[: len(committed)] != committed:
            lacks = f"{look.broker} has {look.records}, and {committed} is committed"
            if look.candidate:
                yield Broken(invariants.LEADER_CANDIDATE_COMPLETENESS, lacks)
            if look.leads:
                yield Broken(invariants.LEADER_COMPLETENESS, lacks)


def _of_high_watermarks(looks: Sequence[_Look]) -> Iterator[Broken]:
    highest: dict[tuple[BrokerId, int], _Look] = {}
    for look in looks:
        if look.high_watermark > len(look.records):
            told = f"{look.broker} is at {look.high_watermark}, and its log ends at {len(look.records)}"
            yield Broken(invariants.HW_WITHIN_LOG, told)
        if not look.leads:
            continue
        before = highest.setdefault(look.term, look)
        if look.high_watermark < before.high_watermark:
            told = f"{look.broker} went from {before.high_watermark} to {look.high_watermark} in one epoch"
            yield Broken(invariants.LEADER_HW_MONOTONE, told)
        highest[look.term] = look


def _of_small_isrs(events: Sequence[Events], looks: Sequence[_Look], parameters: Parameters) -> Iterator[Broken]:
    """A leader that returned NOT_ENOUGH_REPLICAS does not advance its high watermark until the ISR changes."""
    if not parameters.hw_gate:
        return
    for at, leader in _refusals(events):
        later = [look for look in looks if look.at > at and look.broker == leader]
        for before, after in pairwise(later):
            settled = before.controller.partition == after.next.partition
            if settled and after.high_watermark > before.high_watermark:
                moved = f"{leader} went from {before.high_watermark} to {after.high_watermark}"
                yield Broken(invariants.HW_FROZEN_BELOW_MIN_ISR, moved)


def _refusals(events: Sequence[Events]) -> Iterator[tuple[int, BrokerId]]:
    """Each NOT_ENOUGH_REPLICAS response: the index of its event, and the broker."""
    for at, event in enumerate(events):
        if isinstance(event, Exchanged) and event.reply.back() == Produced(Error.NOT_ENOUGH_REPLICAS):
            yield at, event.broker


def _of_acknowledged(events: Sequence[Events], looks: Sequence[_Look]) -> Iterator[Broken]:
    """A record acknowledged with acks=all is below the high watermark of the leader that acknowledged it."""
    for value, at, leader in _acknowledged(events):
        later = (look for look in looks if look.at > at and look.broker == leader and look.leads)
        for look in later:
            if value not in [read for _, read in look.records[: look.high_watermark]]:
                told = f"record {value} is acknowledged, and {leader} has committed {look.high_watermark} records"
                yield Broken(invariants.ACKNOWLEDGED_IS_COMMITTED, told)


def _acknowledged(events: Sequence[Events]) -> Iterator[tuple[int, int, BrokerId]]:
    """Values acknowledged with acks=all, each with the index of the response's event and the leader."""
    open_: dict[int, RequestSent] = {}
    for at, event in enumerate(events):
        match event:
            case Exchanged():
                asked: Exchanged | RequestSent = event
                reply = event.reply.back()
            case RequestSent():
                open_[event.slot] = event
                continue
            case ResponseArrived():
                asked = open_.pop(event.slot)
                reply = event.reply.back()
            case _:
                continue
        request = asked.request.back()
        if isinstance(request, Produce) and request.acks == Acks.ALL and reply.error is Error.NONE:
            yield from ((value, at, asked.broker) for value in request.values)
