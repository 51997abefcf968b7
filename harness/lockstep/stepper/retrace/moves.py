"""The actions of a counterexample, read: what both kinds of machines say in words, as moves that can be made."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from lockstep.errors import UsageError


class Elects(NamedTuple):
    """The controller elects a leader, which begins a leader epoch."""

    leader: int
    epoch: int


class Fails(NamedTuple):
    """The controller takes a broker for failed, which in the published specification begins a leader epoch."""

    broker: int
    epoch: int


class SessionEnds(NamedTuple):
    """The controller has not heard of a broker for too long."""

    broker: int


class HeardAgain(NamedTuple):
    broker: int


class Learns(NamedTuple):
    """A broker learns what the controller decided, in the published specification up to this leader epoch."""

    broker: int
    epoch: int | None = None


class Follows(NamedTuple):
    """A broker learns whom to follow in a leader epoch, and looks into its log."""

    broker: int
    leader: int
    epoch: int


class Writes(NamedTuple):
    """A client writes to whom it takes for the leader."""

    leader: int


class Fetches(NamedTuple):
    follower: int
    leader: int


class Commits(NamedTuple):
    """A leader raises its high watermark."""

    leader: int


class Leaves(NamedTuple):
    """A leader takes a follower out of the ISR."""

    leader: int
    follower: int


class Joins(NamedTuple):
    """A leader takes a follower into the ISR."""

    leader: int
    follower: int


class LagPasses(NamedTuple):
    """The lag time passes for followers, and the leader asks for an ISR without them where it may."""

    leader: int


class AskedFor(NamedTuple):
    """The ISR that a leader asks for reaches the controller, and its answer is under way."""

    leader: int


class Answered(NamedTuple):
    """The controller's answer reaches the leader."""

    leader: int


class AnswerLost(NamedTuple):
    """It does not, and the leader asks again."""

    leader: int


class Killed(NamedTuple):
    broker: int


class LosesPower(NamedTuple):
    """A broker's machine dies, and the end of its log with it."""

    broker: int


class Starts(NamedTuple):
    broker: int


Move: TypeAlias = (
    Elects
    | Fails
    | SessionEnds
    | HeardAgain
    | Learns
    | Follows
    | Writes
    | Fetches
    | Commits
    | Leaves
    | Joins
    | LagPasses
    | AskedFor
    | Answered
    | AnswerLost
    | Killed
    | LosesPower
    | Starts
)

_READ: tuple[tuple[str, Callable[..., Move]], ...] = (
    # As the published specification says it
    (r"the controller elects (\d+), epoch (\d+)", Elects),
    (r"the controller sees (\d+) fail, epoch (\d+)", Fails),
    (r"(\d+) becomes leader, epoch (\d+)", Learns),
    (r"(\d+) begins to follow (\d+), epoch (\d+)", Follows),
    (r"(\d+) takes a write", Writes),
    (r"(\d+) raises its high watermark, .*", Commits),
    (r"(\d+) takes (\d+) out of the ISR", Leaves),
    (r"(\d+) takes (\d+) into the ISR", Joins),
    (r"(\d+) truncates as (\d+) has it", Fetches),
    # As both say it
    (r"(\d+) fetches from (\d+)", Fetches),
    # As our machine says it
    (r"the session of (\d+) ends", SessionEnds),
    (r"(\d+) is heard again", HeardAgain),
    (r"(\d+) learns what the controller decided", Learns),
    (r"a record is written to (\d+)", Writes),
    (r"the lag time passes for .* on (\d+)", LagPasses),
    (r"(\d+) asks for an ISR .*", LagPasses),
    (r"the controller answers the AlterPartition of (\d+)", AskedFor),
    (r"the answer to the AlterPartition of (\d+) arrives", Answered),
    (r"the AlterPartition of (\d+) is lost", AnswerLost),
    (r"(\d+) is killed", Killed),
    (r"(\d+) loses power", LosesPower),
    (r"(\d+) starts", Starts),
)


class NotReplayable(UsageError):
    """A counterexample has an action that the harness cannot bring about."""


def read(action: str) -> Move:
    """What an action of a trace is."""
    for pattern, move in _READ:
        if (matched := re.fullmatch(pattern, action)) is not None:
            return move(*map(int, matched.groups()))
    raise NotReplayable(f"{action!r} cannot be brought about on a live cluster")
