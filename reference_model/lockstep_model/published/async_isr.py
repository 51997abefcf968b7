"""AsyncIsr.tla of hachikuji/kafka-specification: asynchronous ISR changes with the maximal ISR (KIP-497).

One leader that never changes. It sends AlterPartition and goes on with the maximal ISR: every ISR that the controller
may have committed. The controller accepts a request with its current version, and may remove a broker from the ISR at
any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

from lockstep_model.state_machine import Invariant, Machine, Outcomes, Rule

LEADER = 0
NONE = -1


class Isr(NamedTuple):
    """An ISR with its version (partition epoch): the controller's state, and the content of requests and updates."""

    members: frozenset[int]
    version: int


Messages: TypeAlias = frozenset[Isr]


class Leader(NamedTuple):
    """The leader's committed ISR, its pending ISR, and the log end offsets of all replicas."""

    isr: frozenset[int]
    version: int
    pending: frozenset[int]
    """Union of the ISRs proposed since the last update; with `isr` the maximal ISR."""
    pending_version: int
    offsets: tuple[int, ...]
    """Log end offset of each replica, as the leader knows it from fetches."""

    def end(self, replica: int, offset: int) -> Leader:
        """The leader with this log end offset of a replica."""
        return self._replace(offsets=(*self.offsets[:replica], offset, *self.offsets[replica + 1 :]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of the search."""

    replicas: int = 3
    offsets: int = 2
    versions: int = 2


HighWatermark: TypeAlias = Callable[[Leader], int]


def high_watermark(leader: Leader) -> int:
    """HighWatermark: the lowest log end offset in the maximal ISR (KIP-497; Partition.maybeIncrementLeaderHW)."""
    return min(leader.offsets[replica] for replica in leader.isr | leader.pending)


def high_watermark_of_committed_isr(leader: Leader) -> int:
    """Mutant: the lowest log end offset in the committed ISR only."""
    return min(leader.offsets[replica] for replica in leader.isr)


def controller_shrink_isr(bounds: Bounds, replica: int, controller: Isr, updates: Messages) -> Outcomes:
    """ControllerShrinkIsr: the controller removes a failed broker from the ISR."""
    if replica == LEADER or replica not in controller.members or controller.version >= bounds.versions:
        return
    changed = Isr(controller.members - {replica}, controller.version + 1)
    yield changed, updates | {changed}


def controller_handle_request(bounds: Bounds, requests: Messages, controller: Isr, updates: Messages) -> Outcomes:
    """ControllerHandleRequest: AlterPartition is accepted only with the controller's current version (KIP-497)."""
    if controller.version >= bounds.versions:
        return
    for request in requests:
        if request.version == controller.version:
            changed = Isr(request.members, controller.version + 1)
            yield requests, changed, updates | {changed}


def leader_request(high_watermark: HighWatermark, replica: int, leader: Leader, requests: Messages) -> Outcomes:
    """LeaderRequestShrinkIsr, LeaderRequestExpandIsr: the leader proposes an ISR with one member less or more.

    KIP-497.

    A new member must have reached the high watermark (Partition.maybeShrinkIsr, Partition.maybeExpandIsr).
    """
    if replica in leader.isr:
        if replica == LEADER:
            return
        isr = leader.isr - {replica}
    elif leader.offsets[replica] >= high_watermark(leader):
        isr = leader.isr | {replica}
    else:
        return
    asked = leader._replace(pending=leader.pending | isr, pending_version=leader.version)
    yield asked, requests | {Isr(isr, leader.version)}


def leader_write(bounds: Bounds, leader: Leader) -> Outcomes:
    """LeaderWrite: the leader appends a record."""
    if leader.offsets[LEADER] < bounds.offsets:
        yield (leader.end(LEADER, leader.offsets[LEADER] + 1),)


def leader_handle_update(leader: Leader, updates: Messages) -> Outcomes:
    """LeaderHandleUpdate: the leader applies the controller's ISR, and no proposal is pending any more."""
    for update in updates:
        if update.version > leader.version:
            yield Leader(update.members, update.version, frozenset(), NONE, leader.offsets), updates


def follower_replicate(replica: int, leader: Leader) -> Outcomes:
    """FollowerReplicate: a follower fetches the next record."""
    if leader.offsets[replica] < leader.offsets[LEADER]:
        yield (leader.end(replica, leader.offsets[replica] + 1),)


def valid_high_watermark(high_watermark: HighWatermark, leader: Leader, controller: Isr) -> bool:
    """ValidHighWatermark: every member of the controller's ISR has all records below the high watermark."""
    return all(leader.offsets[replica] >= high_watermark(leader) for replica in controller.members)


CONTROLLER, LEADER_PART, REQUESTS, UPDATES = range(4)


def async_isr(bounds: Bounds, *, maximal: bool = True) -> Machine:
    """The machine; with `maximal=False` the mutant whose high watermark uses the committed ISR."""
    hw = high_watermark if maximal else high_watermark_of_committed_isr
    everyone = frozenset(range(bounds.replicas))
    leader = Leader(everyone, 0, frozenset(), NONE, (0,) * bounds.replicas)
    holds = partial(valid_high_watermark, hw)
    return Machine(
        initial=(Isr(everyone, 0), leader, frozenset[Isr](), frozenset[Isr]()),
        rules=tuple(_rules(bounds, hw)),
        invariants=(Invariant(name="valid-high-watermark", reads=(LEADER_PART, CONTROLLER), holds=holds),),
    )


def _rules(bounds: Bounds, hw: HighWatermark) -> Iterator[Rule]:
    handle = partial(controller_handle_request, bounds)
    write = partial(leader_write, bounds)
    yield Rule(name="the controller takes a request", reads=(REQUESTS, CONTROLLER, UPDATES), effect=handle)
    yield Rule(name="the leader takes a write", reads=(LEADER_PART,), effect=write)
    yield Rule(name="the leader learns the ISR", reads=(LEADER_PART, UPDATES), effect=leader_handle_update)
    for id_ in range(bounds.replicas):
        failed, ask = partial(controller_shrink_isr, bounds, id_), partial(leader_request, hw, id_)
        yield Rule(name=f"the controller sees {id_} fail", reads=(CONTROLLER, UPDATES), effect=failed)
        yield Rule(name=f"the leader asks about {id_}", reads=(LEADER_PART, REQUESTS), effect=ask)
        if id_ != LEADER:
            replicate = partial(follower_replicate, id_)
            yield Rule(name=f"{id_} fetches", reads=(LEADER_PART,), effect=replicate)
