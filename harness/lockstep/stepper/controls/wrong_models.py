"""Wrong models: each differs from the right model in one Kafka rule. A walk that agrees with all of them shows nothing.

Each is given the events that the right model was given, and must diverge from the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from lockstep.errors import UsageError
from lockstep.names import suggestion
from lockstep.stepper.model.belief import BeliefTooLarge
from lockstep.stepper.model.client_requests import Reading, as_asked
from lockstep.stepper.model.divergence import Divergence
from lockstep.stepper.model.events import (
    Began,
    CoordinatorElected,
    Decided,
    Event,
    Events,
    Exchanged,
    Found,
    GaveUp,
    GroupAnswered,
    GroupAsked,
    GroupUnanswered,
    MetadataTold,
    RequestSent,
    ResponseArrived,
)
from lockstep.stepper.model.tracker import BeliefTracker
from lockstep_model import metadata
from lockstep_model.groups import mutants as group_mutants
from lockstep_model.groups.offsets import OffsetCommit
from lockstep_model.parameters import Parameters
from lockstep_model.partition.fetch import Fetch, Isolation
from lockstep_model.partition.offsets import ListOffsets, OffsetForLeaderEpoch
from lockstep_model.partition.produce import Acks, Produce
from lockstep_model.replication import mutants
from lockstep_model.transactions import mutants as transactions

SEEN_OF_PARTITIONS = (Decided, Found, Exchanged, RequestSent, ResponseArrived, GaveUp, MetadataTold)
SEEN_OF_GROUPS = (CoordinatorElected, GroupAsked, GroupAnswered, GroupUnanswered)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongModel:
    """A model with one wrong rule: a changed parameter, a dropped guard, or a misread request."""

    name: str
    says: str
    unconcerned: tuple[type[Event], ...] = SEEN_OF_GROUPS
    """Events that are not given to it, since its wrong rule does not concern them.

    A wrong rule about partitions leaves groups right, and the other way round.
    """
    parameters: Callable[[Parameters], Parameters] = lambda parameters: parameters
    """Its model parameters, from the right ones."""
    reading: Reading = as_asked
    """How it reads each request: some as another request than the one that was sent."""


def _without(name: str, guard: str, says: str) -> WrongModel:
    return WrongModel(name=name, says=says, parameters=lambda right: replace(right, dropped=frozenset({guard})))


def _without_of_groups(name: str, guard: str, says: str) -> WrongModel:
    def drop(right: Parameters) -> Parameters:
        return replace(right, groups=replace(right.groups, dropped=frozenset({guard})))

    return WrongModel(name=name, says=says, unconcerned=SEEN_OF_PARTITIONS, parameters=drop)


def _with_of_groups(name: str, says: str, **changes: Any) -> WrongModel:
    def change(right: Parameters) -> Parameters:
        return replace(right, groups=replace(right.groups, **changes))

    return WrongModel(name=name, says=says, unconcerned=SEEN_OF_PARTITIONS, parameters=change)


def _with(name: str, says: str, **changes: Any) -> WrongModel:
    return WrongModel(name=name, says=says, parameters=lambda right: replace(right, **changes))


def _flipped(name: str, says: str, field: str) -> WrongModel:
    def flip(right: Parameters) -> Parameters:
        changes: dict[str, Any] = {field: not getattr(right, field)}
        return replace(right, **changes)

    return WrongModel(name=name, says=says, parameters=flip)


def _reading(
    name: str,
    says: str,
    kind: type[Fetch | ListOffsets | OffsetForLeaderEpoch | Produce | OffsetCommit],
    **changes: Any,
) -> WrongModel:
    def read(request: Any) -> Any:
        return request._replace(**changes) if isinstance(request, kind) else request

    unconcerned = SEEN_OF_PARTITIONS if kind is OffsetCommit else SEEN_OF_GROUPS
    return WrongModel(name=name, says=says, unconcerned=unconcerned, reading=read)


def _acks(name: str, says: str, asked: Acks, read: Acks) -> WrongModel:
    def reading(request: Any) -> Any:
        return request._replace(acks=read) if isinstance(request, Produce) and request.acks == asked else request

    return WrongModel(name=name, says=says, reading=reading)


WRONG_MODELS = (
    _flipped("hw-gate", "the high watermark rises below min.insync.replicas, or before 3.7 does not", "hw_gate"),
    _flipped("elr", "there are eligible leader replicas, or where there are, there are none", "elr"),
    _flipped(
        "epoch-bump",
        "the leader epoch rises when the controller takes a follower out of the ISR, or in ZooKeeper mode does not",
        "epoch_bump_on_isr_shrink",
    ),
    _with("min-isr-1", "min.insync.replicas is 1", min_isr=1),
    _with("min-isr-3", "min.insync.replicas is 3", min_isr=3),
    _without("elect-anyone", mutants.ELECT_IN_SYNC, "a leader need not be in sync"),
    _without("no-divergence", mutants.DIVERGENCE_CHECK, "a follower keeps records that its leader lacks"),
    _without("last-member-leaves", mutants.LAST_MEMBER_STAYS, "the last member leaves the ISR, too"),
    _without("unclean-stays", mutants.ELR_FORGETS_UNCLEAN, "a replica stays in the ELR through an unclean shutdown"),
    _acks("acks-1-waits", "a write with acks=1 waits for the ISR", Acks.LEADER, Acks.ALL),
    _acks("acks-all-hurries", "a write with acks=all waits for no follower", Acks.ALL, Acks.LEADER),
    _acks("acks-0-answers", "a write with acks=0 is answered", Acks.NONE, Acks.LEADER),
    _reading("any-checksum", "a leader does not check a batch's checksum", Produce, corrupt=False),
    _reading("not-idempotent", "a leader does not check a producer's sequence", Produce, batch=None),
    _reading("reads-above-hw", "consumers read to the end of the log", Fetch, isolation=Isolation.LOG_END),
    _reading("leaders-only", "only leaders answer consumers", Fetch, of_leader_only=True),
    _reading("fetch-any-epoch", "the leader epoch in a Fetch is not checked", Fetch, leader_epoch=None),
    _reading("list-any-epoch", "the leader epoch in ListOffsets is not checked", ListOffsets, leader_epoch=None),
    _reading(
        "end-any-epoch",
        "the requester's leader epoch is not checked",
        OffsetForLeaderEpoch,
        leader_epoch=None,
    ),
    _reading("list-to-hw", "the end of a log is its high watermark", ListOffsets, isolation=Isolation.READ_UNCOMMITTED),
    _reading("followers-list", "followers tell consumers their offsets", ListOffsets, of_leader_only=False),
    _without("all-online", metadata.OFFLINE_TOLD, "Metadata has no offline replicas"),
    _without("told-at-once", metadata.TOLD_LATER, "brokers show a decision in Metadata as soon as it is made"),
    _without("open-transactions-read", transactions.OPEN_HOLDS_LSO, "open transactions hold no reader back"),
    _without("init-keeps-epoch", transactions.EPOCH_BUMP_ON_INIT, "a new producer has the epoch of the one before"),
    _without("init-leaves-open", transactions.ABORT_ON_INIT, "a new producer goes on with an open transaction"),
    _without("end-keeps-epoch", transactions.EPOCH_BUMP_ON_END, "the end of a transaction raises no epoch in 4.0"),
    _without("end-of-any-epoch", transactions.END_EPOCH_CHECK, "EndTxn with any producer epoch ends a transaction"),
    _without("add-of-any-epoch", transactions.ADD_EPOCH_CHECK, "partitions are added with any producer epoch"),
    _with("unverified", "a leader does not verify a transaction", transaction_verification=False),
    _without_of_groups(
        "join-hurries", group_mutants.JOIN_WAITS_FOR_MEMBERS, "the next generation does not wait for members to join"
    ),
    _without_of_groups(
        "beat-any-generation", group_mutants.GENERATION_OF_HEARTBEAT, "the generation of a Heartbeat is not checked"
    ),
    _without_of_groups(
        "same-id-for-instance", group_mutants.NEW_ID_FOR_INSTANCE, "a static member that comes back keeps its id"
    ),
    _without_of_groups(
        "report-any-epoch", group_mutants.EPOCH_OF_HEARTBEAT, "the member epoch of a heartbeat is not checked"
    ),
    _without_of_groups(
        "enter-any-instance", group_mutants.INSTANCE_RELEASED, "a member may join with an instance id that is in use"
    ),
    _without_of_groups("advance-first", group_mutants.REVOKE_BEFORE_ADVANCE, "epochs rise before all is revoked"),
    _without_of_groups(
        "assign-first", group_mutants.RELEASE_BEFORE_ASSIGN, "partitions are assigned before they are revoked"
    ),
    _without_of_groups("commit-any-member", group_mutants.MEMBER_OF_COMMIT, "an unknown member may commit"),
    _without_of_groups(
        "commit-any-generation", group_mutants.GENERATION_OF_COMMIT, "the generation of an OffsetCommit is not checked"
    ),
    _without_of_groups("commit-any-epoch", group_mutants.EPOCH_OF_COMMIT, "a commit's member epoch is not checked"),
    _without_of_groups(
        "simple-commit-any-time",
        group_mutants.SIMPLE_WHEN_EMPTY,
        "a simple consumer may commit beside members",
    ),
    _reading("commits-nothing", "committed offsets are not stored", OffsetCommit, offsets=()),
    _with_of_groups("no-room", "a group has room for one member only", max_size=1),
)
"""Two wrong rules are missing, since no live cluster can be brought to a state in which they show.

Whether a new incarnation leaves the ISR when it registers: it cannot register before the old session has expired, and
at that moment the controller fences the broker and removes it from the ISR anyway. Whether the high watermark waits
for the maximal ISR or for the committed ISR only: a follower for which the leader has requested the ISR has just caught
up, and the high watermark waits for every caught-up follower until replica.lag.time.max.ms has passed, which takes as
long as the session of a leader or a controller that does not respond.
"""


def wrong_model(name: str) -> WrongModel:
    """A wrong model by its name."""
    known = {wrong.name: wrong for wrong in WRONG_MODELS}
    if name not in known:
        raise UsageError(f"there is no wrong model {name!r}{suggestion(name, known)}")
    return known[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Result of a model on recorded events."""

    divergence: Divergence | None
    events: int
    """Number of events given to it, the last included; fewer than all after a divergence or a too large belief."""


def judge(
    events: Iterable[Events],
    parameters: Parameters,
    reading: Reading = as_asked,
    unconcerned: tuple[type[Event], ...] = (),
) -> Judged:
    """Give a model the recorded events of a walk, except those of the types in `unconcerned`."""
    told = iter(events)
    began = next(told)
    assert isinstance(began, Began)
    count = 1
    try:
        tracker = BeliefTracker(parameters, began, reading=reading)
        for event in told:
            count += 1
            if not isinstance(event, unconcerned):
                tracker.tell(event)
    except Divergence as divergence:
        return Judged(divergence=divergence, events=count)
    except BeliefTooLarge:  # a wrong model that permits too much has not diverged
        return Judged(divergence=None, events=count)
    return Judged(divergence=None, events=count)
