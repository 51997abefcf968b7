"""KafkaReplication.tla of hachikuji/kafka-specification (2018) and the modules that extend it.

The modules differ in how followers truncate and fetch: to the high watermark, KIP-101, KIP-279, KIP-320. One partition.
The only messages are LeaderAndIsr requests, which may be lost, repeated and reordered; a follower reads the leader's
state directly. The quorum (ZooKeeper) is seen by all replicas at once. Brokers do not crash: one that was removed from
the ISR may go on as a zombie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, permutations
from typing import NamedTuple, TypeAlias

from lockstep_model.state_machine import Invariant, Machine, Outcomes, Part, Rule, Symmetry, always

NONE = -1
"""No leader; also the epoch before the first."""


class LeaderAndIsr(NamedTuple):
    """Content of a LeaderAndIsr request."""

    leader_epoch: int
    leader: int
    isr: frozenset[int]


class Quorum(LeaderAndIsr):
    """State in the quorum: that of the last request, until the leader changes the ISR."""

    __slots__ = ()

    def __str__(self) -> str:
        leader = "no leader" if self.leader == NONE else f"leader {self.leader}"
        return f"the quorum has {leader} in epoch {self.leader_epoch}, ISR {sorted(self.isr)}"


Request: TypeAlias = LeaderAndIsr | None
"""The LeaderAndIsr request that began a leader epoch; replicas can read it from then on, at any time."""


class Counters(NamedTuple):
    """The next record id and the next leader epoch."""

    next_record: int
    next_epoch: int


class Record(NamedTuple):
    """A record with the leader epoch of its batch."""

    id: int
    epoch: int


class Replica(NamedTuple):
    """A replica's log, high watermark, and last LeaderAndIsr state; it presumes to lead if that names it as leader."""

    id: int
    log: tuple[Record, ...] = ()
    hw: int = 0
    leader_epoch: int = NONE
    leader: int = NONE
    isr: frozenset[int] = frozenset()

    def __str__(self) -> str:
        records = " ".join(f"{chr(ord('A') + record.id)}{record.epoch}" for record in self.log)
        leader = f"leader {self.leader} in epoch {self.leader_epoch}"
        return f"{self.id} has log [{records}], high watermark {self.hw}, {leader}"

    def has(self, offset: int) -> bool:
        """Whether the log has a record at this offset."""
        return offset < len(self.log)

    def told(self, request: LeaderAndIsr) -> Replica:
        """The replica with the state of a LeaderAndIsr request."""
        return self._replace(leader_epoch=request.leader_epoch, leader=request.leader, isr=request.isr)

    def truncated(self, offset: int) -> Replica:
        """The replica truncated to this offset; the high watermark falls with the log end."""
        return self._replace(log=self.log[:offset], hw=min(offset, self.hw))


def leads(replica: Replica) -> bool:
    """Whether the replica presumes to be the leader (ReplicaPresumesLeadership)."""
    return replica.leader == replica.id


def leads_in(epoch: int, replica: Replica) -> bool:
    """Whether the replica presumes to be the leader in this epoch."""
    return leads(replica) and replica.leader_epoch == epoch


def is_before(epoch: int, replica: Replica) -> bool:
    """Whether the replica's leader epoch is lower."""
    return replica.leader_epoch < epoch


def follows(leader: int, follower: Replica) -> bool:
    """ReplicaIsFollowing: whether the replica follows this leader."""
    return follower.leader == leader


def appoints(leader: int, said: Request) -> bool:
    """Whether the quorum, or a LeaderAndIsr request, names this replica as leader."""
    return said is not None and said.leader == leader


def comes_to(epoch: int, counters: Counters) -> bool:
    """Whether this is the next leader epoch."""
    return counters.next_epoch == epoch


def has_more_for(isr: frozenset[int], leader: Replica) -> bool:
    """Whether a presumed leader with this ISR has records above its high watermark."""
    return leads(leader) and leader.isr == isr and leader.has(leader.hw)


def has_committed(replica: Replica) -> bool:
    """Whether the replica's high watermark is above 0."""
    return replica.hw > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of the search; leader epochs go from 0 to `epochs`."""

    replicas: int = 3
    log_size: int = 2
    records: int = 2
    epochs: int = 2


# --- The controller -------------------------------------------------------------------------------------------------


def _update(counters: Counters, leader: int, isr: frozenset[int]) -> Outcomes:
    """Begins a leader epoch: the quorum changes at once, and the LeaderAndIsr request can be read from then on."""
    update = LeaderAndIsr(counters.next_epoch, leader, isr)
    yield counters._replace(next_epoch=counters.next_epoch + 1), Quorum(*update), update


def controller_shrink_isr(replica: int, counters: Counters, quorum: Quorum, _: Request) -> Outcomes:
    """ControllerShrinkIsr: a failed broker leaves the ISR, and a partition it led has no leader.

    A leader that is the last ISR member stays in the ISR.
    """
    if quorum.leader == replica:
        remaining = quorum.isr if quorum.isr == {replica} else quorum.isr - {replica}
        return _update(counters, NONE, remaining)
    if replica in quorum.isr:
        return _update(counters, quorum.leader, quorum.isr - {replica})
    return ()


def controller_elect_leader(replica: int, counters: Counters, quorum: Quorum, _: Request) -> Outcomes:
    """ControllerElectLeader: a clean election, of any ISR member at any time."""
    if replica not in quorum.isr or quorum.leader == replica:
        return ()
    return _update(counters, replica, quorum.isr)


# --- The leader -----------------------------------------------------------------------------------------------------


def become_leader(request: LeaderAndIsr, replica: Replica) -> Outcomes:
    """BecomeLeader: a replica reads a LeaderAndIsr request with a higher epoch that names it as leader.

    Its high watermark may be below the true one.
    """
    if request.leader == replica.id and request.leader_epoch > replica.leader_epoch:
        yield request, replica.told(request)


def leader_write(bounds: Bounds, replica: Replica, counters: Counters) -> Outcomes:
    """LeaderWrite: a presumed leader, perhaps a zombie, appends a record."""
    if not leads(replica):
        return
    if counters.next_record >= bounds.records or len(replica.log) >= bounds.log_size:
        return
    record = Record(counters.next_record, replica.leader_epoch)
    yield replica._replace(log=(*replica.log, record)), counters._replace(next_record=counters.next_record + 1)


def _change_isr(quorum: Quorum, leader: Replica, follower: Replica, isr: frozenset[int]) -> Outcomes:
    """QuorumUpdateLeaderAndIsr: only the quorum's current leader, in the current leader epoch, can change the ISR."""
    if quorum.leader == leader.id and leads_in(quorum.leader_epoch, leader):
        yield quorum._replace(isr=isr), leader._replace(isr=isr), follower


CaughtUp: TypeAlias = Callable[[Replica, Replica, int], bool]
"""Whether the leader regards a follower as having all records below an offset."""


def caught_up(leader: Replica, follower: Replica, end: int) -> bool:
    """IsFollowerCaughtUp: by log end offset only, as before KIP-320."""
    return follower.leader == leader.id and (end == 0 or (leader.has(end - 1) and follower.has(end - 1)))


def caught_up_in_log(leader: Replica, follower: Replica, end: int) -> bool:
    """IsFollowerCaughtUpToLeaderEpoch: by the leader epoch of the last record (Kip320FirstTry)."""
    if not leads(leader) or not caught_up(leader, follower, end):
        return False
    return end == 0 or leader.log[end - 1].epoch == follower.log[end - 1].epoch


def following_epoch(leader: Replica, follower: Replica) -> bool:
    """Whether the follower is in the leader's epoch, which each fetch request carries since KIP-320.

    currentLeaderEpoch.
    """
    presumed = leads(leader) and follower.leader == leader.id
    return presumed and follower.leader_epoch == leader.leader_epoch


def caught_up_in_epoch(leader: Replica, follower: Replica, end: int) -> bool:
    """By log end offset, for a follower in the leader's epoch (KIP-320)."""
    return following_epoch(leader, follower) and len(follower.log) >= end


def hw_reached_epoch(leader: Replica) -> bool:
    """Whether the high watermark has reached the leader's own epoch; before, the true one may be higher.

    KAFKA-7128.
    """
    if leader.hw == len(leader.log):
        return True
    return leader.has(leader.hw) and leader.log[leader.hw].epoch == leader.leader_epoch


def leader_shrink_isr(is_caught_up: CaughtUp, quorum: Quorum, leader: Replica, follower: Replica) -> Outcomes:
    """LeaderShrinkIsr: the leader may remove a follower that is not at its log end (Partition.maybeShrinkIsr)."""
    if follower.id not in leader.isr or is_caught_up(leader, follower, len(leader.log)):
        return ()
    return _change_isr(quorum, leader, follower, leader.isr - {follower.id})


def leader_expand_isr(
    is_caught_up: CaughtUp, only_in_own_epoch: bool, quorum: Quorum, leader: Replica, follower: Replica
) -> Outcomes:
    """LeaderExpandIsr: the leader may add a follower that has reached the high watermark (Partition.maybeExpandIsr)."""
    if follower.id in leader.isr or not is_caught_up(leader, follower, leader.hw):
        return ()
    if only_in_own_epoch and not hw_reached_epoch(leader):
        return ()
    return _change_isr(quorum, leader, follower, leader.isr | {follower.id})


def leader_increment_hw(bounds: Bounds, is_caught_up: CaughtUp, leader: Replica, *members: Replica) -> Outcomes:
    """LeaderIncHighWatermark: the high watermark advances when all of the leader's ISR have the next record.

    Partition.maybeIncrementLeaderHW.
    """
    if not leads(leader) or leader.hw >= bounds.log_size or not leader.has(leader.hw):
        return
    if all(is_caught_up(leader, replica, leader.hw + 1) for replica in (leader, *members)):
        yield leader._replace(hw=leader.hw + 1), *members


# --- The follower ---------------------------------------------------------------------------------------------------


def _replicate(follower: Replica, leader: Replica) -> Outcomes:
    """The follower appends the leader's next record and takes over its high watermark."""
    end = len(follower.log)
    if leader.has(end):
        yield follower._replace(log=(*follower.log, leader.log[end]), hw=min(leader.hw, end + 1)), leader


def fetch(follower: Replica, leader: Replica) -> Outcomes:
    """FollowerReplicate without fencing: follower and leader only agree on the leader."""
    return _replicate(follower, leader) if leads(leader) and follower.leader == leader.id else ()


def fetch_checking_log(follower: Replica, leader: Replica) -> Outcomes:
    """FollowerFetch: the follower's last record has the epoch of the leader's record at that offset.

    Kip320FirstTry.
    """
    return _replicate(follower, leader) if caught_up_in_log(leader, follower, len(follower.log)) else ()


def fetch_in_epoch(follower: Replica, leader: Replica) -> Outcomes:
    """FencedFollowerFetch: the fetch carries currentLeaderEpoch, and both are in the same leader epoch (KIP-320)."""
    return _replicate(follower, leader) if following_epoch(leader, follower) else ()


TruncationPoint: TypeAlias = Callable[[Replica, Replica], int]
"""The offset to which a new follower truncates, from the leader's log and its own."""


def high_watermark(_: Replica, follower: Replica) -> int:
    """KafkaTruncateToHighWatermark, before KIP-101: the follower's own high watermark."""
    return follower.hw


def end_of_epoch(leader: Replica, follower: Replica) -> int:
    """LookupOffsetForEpoch: the leader's end offset for the epoch of the follower's last record (KIP-101).

    If the leader does not know that epoch, the follower's own high watermark.
    """
    if not follower.log:
        return 0
    if not leader.log:
        return follower.hw
    epoch = follower.log[-1].epoch
    if leader.log[-1].epoch == epoch:
        return len(leader.log)
    later = (offset for offset, record in enumerate(leader.log) if record.epoch > epoch)
    return next(later, follower.hw)


def last_match(leader: Replica, follower: Replica) -> int:
    """FirstNonMatchingOffsetFromTail: the offset after the last record that both logs share (KIP-279)."""
    matching = (
        offset
        for offset in reversed(range(min(len(leader.log), len(follower.log))))
        if leader.log[offset] == follower.log[offset]
    )
    return next((offset + 1 for offset in matching), 0)


def become_follower_truncating(
    point: TruncationPoint, request: LeaderAndIsr, leader: Replica, follower: Replica
) -> Outcomes:
    """BecomeFollowerAndTruncateTo: a replica reads a LeaderAndIsr request and truncates, in any epoch of the leader."""
    if request.leader == leader.id and request.leader_epoch > follower.leader_epoch:
        offset = point(leader, follower)
        if offset <= len(follower.log):
            yield request, leader, follower.truncated(offset).told(request)


def become_follower_fenced(request: LeaderAndIsr, leader: Replica, follower: Replica) -> Outcomes:
    """FencedBecomeFollowerAndTruncate: the same, but only once the leader is in the epoch of the request (KIP-320)."""
    if leads_in(request.leader_epoch, leader):
        return become_follower_truncating(last_match, request, leader, follower)
    return ()


def become_follower(request: LeaderAndIsr, leader: Replica, follower: Replica) -> Outcomes:
    """BecomeFollower: a replica reads a LeaderAndIsr request and does not truncate until a fetch fails.

    Kip320FirstTry.
    """
    if request.leader == leader.id and request.leader_epoch > follower.leader_epoch:
        yield request, leader, follower.told(request)


def truncate(follower: Replica, leader: Replica) -> Outcomes:
    """FollowerTruncate: the leader has no record, or one of another epoch, at the follower's last offset.

    Kip320FirstTry.
    """
    if not leads(leader) or follower.leader != leader.id or not follower.log:
        return
    last = len(follower.log) - 1
    if not leader.has(last) or leader.log[last].epoch != follower.log[last].epoch:
        yield follower.truncated(last_match(leader, follower)), leader


# --- The variants ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One specification: how followers truncate and fetch, and when the leader regards them as caught up."""

    become_follower: Callable[[LeaderAndIsr, Replica, Replica], Outcomes]
    fetch: Callable[[Replica, Replica], Outcomes] = fetch
    to_shrink: CaughtUp = caught_up
    to_expand: CaughtUp = caught_up
    to_commit: CaughtUp = caught_up
    expand_only_in_own_epoch: bool = False
    truncate: Callable[[Replica, Replica], Outcomes] | None = None


KIP320 = Variant(
    become_follower=become_follower_fenced,
    fetch=fetch_in_epoch,
    to_shrink=caught_up_in_epoch,
    to_expand=caught_up_in_epoch,
    to_commit=caught_up_in_epoch,
    expand_only_in_own_epoch=True,
)

VARIANTS: dict[str, Variant] = {
    "truncate-to-hw": Variant(become_follower=partial(become_follower_truncating, high_watermark)),
    "kip101": Variant(become_follower=partial(become_follower_truncating, end_of_epoch)),
    "kip279": Variant(become_follower=partial(become_follower_truncating, last_match)),
    "kip320-first-try": Variant(
        become_follower=become_follower,
        fetch=fetch_checking_log,
        to_shrink=caught_up_in_log,
        to_expand=caught_up_in_log,
        to_commit=caught_up_in_log,
        expand_only_in_own_epoch=True,
        truncate=truncate,
    ),
    "kip320": KIP320,
    "kip320-unfenced": replace(KIP320, become_follower=partial(become_follower_truncating, last_match)),
}

MUTANTS: dict[str, Variant] = {
    "hw-reached-epoch": replace(KIP320, expand_only_in_own_epoch=False),
    "hw-epoch": replace(KIP320, to_commit=caught_up),
    "fetch-epoch": replace(KIP320, fetch=fetch),
}
"""KIP-320 without one of its guards, to show that each guard is needed."""

COUNTERS, QUORUM, REPLICAS = range(3)
"""Where the parts are; the requests come after the replicas, one place for each epoch that there can be."""


def replication(variant: Variant, bounds: Bounds) -> Machine:
    """The machine of one variant, within these bounds."""
    ids = range(bounds.replicas)
    return Machine(
        initial=(
            Counters(0, 0),
            Quorum(NONE, NONE, frozenset(ids)),
            *(Replica(id_) for id_ in ids),
            *(None for _ in range(bounds.epochs + 1)),
        ),
        rules=tuple(_rules(variant, bounds)),
        invariants=tuple(_invariants(bounds)),
        symmetry=Symmetry(places=tuple(REPLICAS + id_ for id_ in ids), rename=_rename),
    )


def _subsets(places: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    return (chosen for size in range(len(places) + 1) for chosen in combinations(places, size))


def _rules(variant: Variant, bounds: Bounds) -> Iterator[Rule]:
    for epoch in range(bounds.epochs + 1):
        yield from _rules_of_epoch(variant, bounds, epoch)
    for id_ in range(bounds.replicas):
        yield from _rules_of_leader(variant, bounds, id_)
    for follower, leader in permutations(range(bounds.replicas), 2):
        pair, following = (REPLICAS + follower, REPLICAS + leader), partial(follows, leader)
        yield Rule(name=f"{follower} fetches from {leader}", reads=pair, when=following, effect=variant.fetch)
        if variant.truncate:
            name = f"{follower} truncates as {leader} has it"
            yield Rule(name=name, reads=pair, when=following, effect=variant.truncate)


def _rules_of_epoch(variant: Variant, bounds: Bounds, epoch: int) -> Iterator[Rule]:
    """Rules that begin a leader epoch, and by which replicas learn of it."""
    ids, request = range(bounds.replicas), REPLICAS + bounds.replicas + epoch
    next_, on_record = partial(comes_to, epoch), (COUNTERS, QUORUM, request)
    behind = partial(is_before, epoch)
    found = partial(leads_in, epoch) if variant.become_follower is become_follower_fenced else always
    for id_ in ids:
        failed, elected = partial(controller_shrink_isr, id_), partial(controller_elect_leader, id_)
        yield Rule(name=f"the controller sees {id_} fail, epoch {epoch}", reads=on_record, when=next_, effect=failed)
        yield Rule(name=f"the controller elects {id_}, epoch {epoch}", reads=on_record, when=next_, effect=elected)
        yield Rule(
            name=f"{id_} becomes leader, epoch {epoch}",
            reads=(request, REPLICAS + id_),
            when=partial(appoints, id_),
            and_when=(behind,),
            effect=become_leader,
        )
    for leader, follower in permutations(ids, 2):
        yield Rule(
            name=f"{follower} begins to follow {leader}, epoch {epoch}",
            reads=(request, REPLICAS + leader, REPLICAS + follower),
            when=partial(appoints, leader),
            and_when=(found, behind),
            effect=variant.become_follower,
        )


def _rules_of_leader(variant: Variant, bounds: Bounds, id_: int) -> Iterator[Rule]:
    """Rules of a leader: append, high watermark, ISR changes."""
    here, others = REPLICAS + id_, tuple(REPLICAS + other for other in range(bounds.replicas) if other != id_)
    yield Rule(name=f"{id_} takes a write", reads=(here, COUNTERS), when=leads, effect=partial(leader_write, bounds))
    increment = partial(leader_increment_hw, bounds, variant.to_commit)
    following = partial(follows, id_)
    for members in _subsets(others):
        isr = frozenset((id_, *(place - REPLICAS for place in members)))
        yield Rule(
            name=f"{id_} raises its high watermark, with ISR {sorted(isr)}",
            reads=(here, *members),
            when=partial(has_more_for, isr),
            and_when=(following,) * len(members),
            effect=increment,
        )
    shrink = partial(leader_shrink_isr, variant.to_shrink)
    expand = partial(leader_expand_isr, variant.to_expand, variant.expand_only_in_own_epoch)
    known = partial(appoints, id_)
    for place in others:
        out, into = (f"{id_} takes {place - REPLICAS} {where} the ISR" for where in ("out of", "into"))
        reads = (QUORUM, here, place)
        yield Rule(name=out, reads=reads, when=known, and_when=(leads,), effect=shrink)
        yield Rule(name=into, reads=reads, when=known, and_when=(leads, following), effect=expand)


# --- The invariants -------------------------------------------------------------------------------------------------


def leader_in_isr(quorum: Quorum) -> bool:
    """LeaderInIsr; as published it is false in the initial state, which has no leader."""
    return quorum.leader == NONE or quorum.leader in quorum.isr


def _replicated(leader: Replica, replica: Replica) -> bool:
    """Whether the replica has every record below the leader's high watermark."""
    hw = leader.hw
    return len(leader.log) >= hw and leader.log[:hw] == replica.log[:hw]


def weak_isr(leader: Replica, replica: Replica) -> bool:
    """WeakIsr: records below a presumed leader's high watermark are on every member of its own ISR."""
    return not leads(leader) or replica.id not in leader.isr or _replicated(leader, replica)


def strong_isr(leader: Replica, replica: Replica, quorum: Quorum) -> bool:
    """StrongIsr: records below any presumed leader's high watermark are on every member of the quorum's ISR.

    So every replica that can be elected has them.
    """
    return not leads(leader) or replica.id not in quorum.isr or _replicated(leader, replica)


def logs_match(one: Replica, other: Replica) -> bool:
    """Two replicas have the same records below both high watermarks."""
    hw = min(one.hw, other.hw)
    return all(mine == theirs for mine, theirs in zip(one.log[:hw], other.log[:hw], strict=False))


def _invariants(bounds: Bounds) -> Iterator[Invariant]:
    places = [REPLICAS + id_ for id_ in range(bounds.replicas)]
    yield Invariant(name="leader-in-isr", reads=(QUORUM,), holds=leader_in_isr)
    for pair in combinations(places, 2):
        yield Invariant(name="log-mismatch", reads=pair, when=has_committed, holds=logs_match)
    for pair in permutations(places, 2):
        yield Invariant(name="weak-isr", reads=pair, when=has_committed, holds=weak_isr)
        yield Invariant(name="strong-isr", reads=(*pair, QUORUM), when=has_committed, holds=strong_isr)


def _rename(part: Part, names: tuple[int, ...]) -> Part:
    """The part with all replica ids renamed, for symmetry reduction."""
    match part:
        case LeaderAndIsr():
            return part._replace(leader=_renamed(part.leader, names), isr=_all_renamed(part.isr, names))
        case Replica():
            return part._replace(
                id=names[part.id], leader=_renamed(part.leader, names), isr=_all_renamed(part.isr, names)
            )
        case _:
            return part


def _renamed(id_: int, names: tuple[int, ...]) -> int:
    return NONE if id_ == NONE else names[id_]


def _all_renamed(ids: frozenset[int], names: tuple[int, ...]) -> frozenset[int]:
    return frozenset(names[id_] for id_ in ids)
