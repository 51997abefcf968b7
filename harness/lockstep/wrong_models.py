"""Models that are wrong in one thing each: a walk that agrees with all of them shows nothing.

Each is held to what a cluster did, as the right model was told it, and must diverge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from harness.errors import UsageError
from harness.lockstep.events import Began, Events
from harness.lockstep.following import Divergence, Following
from harness.lockstep.handling import Reading, as_asked
from harness.scenario import suggestion
from reference_model import mutants
from reference_model.fetch import Fetch, Isolation
from reference_model.offsets import ListOffsets, OffsetForLeaderEpoch
from reference_model.parameters import Parameters
from reference_model.produce import Acks, Produce


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongModel:
    """What it believes of Kafka."""

    name: str
    says: str
    parameters: Callable[[Parameters], Parameters] = lambda parameters: parameters
    reading: Reading = as_asked
    """How it reads requests: as others than they are."""


def _without(name: str, guard: str, says: str) -> WrongModel:
    return WrongModel(name=name, says=says, parameters=lambda right: replace(right, dropped=frozenset({guard})))


def _with(name: str, says: str, **changes: Any) -> WrongModel:
    return WrongModel(name=name, says=says, parameters=lambda right: replace(right, **changes))


def _flipped(name: str, says: str, field: str) -> WrongModel:
    def flip(right: Parameters) -> Parameters:
        changes: dict[str, Any] = {field: not getattr(right, field)}
        return replace(right, **changes)

    return WrongModel(name=name, says=says, parameters=flip)


def _reading(
    name: str, says: str, kind: type[Fetch | ListOffsets | OffsetForLeaderEpoch | Produce], **changes: Any
) -> WrongModel:
    def read(request: Any) -> Any:
        return request._replace(**changes) if isinstance(request, kind) else request

    return WrongModel(name=name, says=says, reading=read)


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
    _flipped(
        "new-incarnation",
        "a broker that comes back stays in the ISR, or before 4.0 leaves it",
        "new_incarnation_leaves_isr",
    ),
    _with("min-isr-1", "min.insync.replicas is 1", min_isr=1),
    _with("min-isr-3", "min.insync.replicas is 3", min_isr=3),
    _without("elect-anyone", mutants.ELECT_IN_SYNC, "a leader need not be in sync"),
    _without("no-divergence", mutants.DIVERGENCE_CHECK, "a follower keeps what its leader does not have"),
    _without("isr-not-maximal", mutants.MAXIMAL_ISR, "the high watermark waits for the committed ISR only"),
    _acks("acks-1-waits", "a write with acks=1 waits for the ISR", Acks.LEADER, Acks.ALL),
    _acks("acks-all-hurries", "a write with acks=all waits for nobody", Acks.ALL, Acks.LEADER),
    _acks("acks-0-answers", "a write with acks=0 is answered", Acks.NONE, Acks.LEADER),
    _reading("not-idempotent", "nobody looks at what a producer has written already", Produce, batch=None),
    _reading("reads-above-hw", "consumers read to the end of the log", Fetch, isolation=Isolation.LOG_END),
    _reading("leaders-only", "only leaders answer consumers", Fetch, of_leader_only=True),
    _reading("fetch-any-epoch", "nobody looks at the epoch that a consumer knows", Fetch, leader_epoch=None),
    _reading("list-any-epoch", "nobody looks at the epoch of who lists offsets", ListOffsets, leader_epoch=None),
    _reading("end-any-epoch", "nobody looks at the epoch of who asks", OffsetForLeaderEpoch, leader_epoch=None),
    _reading("list-to-hw", "the end of a log is its high watermark", ListOffsets, isolation=Isolation.READ_UNCOMMITTED),
    _reading("followers-list", "followers tell consumers their offsets", ListOffsets, of_leader_only=False),
)


def wrong_model(name: str) -> WrongModel:
    """A wrong model by its name."""
    known = {wrong.name: wrong for wrong in WRONG_MODELS}
    if name not in known:
        raise UsageError(f"there is no wrong model {name!r}{suggestion(name, known)}")
    return known[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """How far a model could follow."""

    divergence: Divergence | None
    events: int
    """How many it was told, the last one included."""


def judge(events: Iterable[Events], parameters: Parameters, reading: Reading = as_asked) -> Judged:
    """Tell a model what another was told."""
    told = iter(events)
    began = next(told)
    assert isinstance(began, Began)
    count = 1
    try:
        following = Following(parameters, began, reading=reading)
        for event in told:
            count += 1
            following.tell(event)
    except Divergence as divergence:
        return Judged(divergence=divergence, events=count)
    return Judged(divergence=None, events=count)
