"""Moves: the actions of a counterexample, parsed from the words in which the two state machines name them.

One machine is the published TLA+ specification (KafkaReplication and its variants), the other is our own model.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from lockstep.errors import UsageError


class Elects(NamedTuple):
    """The controller elects a leader, in a new leader epoch."""

    leader: int
    epoch: int


class Fails(NamedTuple):
    """The controller removes a failed broker from the ISR. In the published specification the leader epoch rises."""

    broker: int
    epoch: int


class SessionEnds(NamedTuple):
    """A broker's session expires."""

    broker: int


class HeardAgain(NamedTuple):
    """A broker's heartbeats arrive again."""

    broker: int


class Learns(NamedTuple):
    """A broker applies the controller's decisions; in the published specification those up to this leader epoch."""

    broker: int
    epoch: int | None = None


class Follows(NamedTuple):
    """A broker becomes follower of this leader in a leader epoch, and truncates its log if it must."""

    broker: int
    leader: int
    epoch: int


class Writes(NamedTuple):
    """A producer writes a record to a broker that may be a deposed leader."""

    leader: int


class Fetches(NamedTuple):
    """A follower fetches from a leader, and appends or truncates."""

    follower: int
    leader: int


class Commits(NamedTuple):
    """A leader advances its high watermark."""

    leader: int


class LeavesIsr(NamedTuple):
    """A leader removes a follower from the ISR."""

    leader: int
    follower: int


class JoinsIsr(NamedTuple):
    """A leader adds a follower to the ISR."""

    leader: int
    follower: int


class LagPasses(NamedTuple):
    """replica.lag.time.max.ms passes for followers: the leader may request an ISR without them."""

    leader: int


class IsrRequestArrives(NamedTuple):
    """A leader's AlterPartition reaches the controller, whose response is in flight."""

    leader: int


class IsrResponseArrives(NamedTuple):
    """The controller's AlterPartition response reaches the leader."""

    leader: int


class IsrResponseLost(NamedTuple):
    """The AlterPartition response is lost: the leader sends the request again."""

    leader: int


class Killed(NamedTuple):
    """A broker's process is killed. Its log survives in the page cache."""

    broker: int


class LosesPower(NamedTuple):
    """A broker's machine loses power: the end of its log, which was not flushed, is lost."""

    broker: int


class Starts(NamedTuple):
    """A broker starts again."""

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
    | LeavesIsr
    | JoinsIsr
    | LagPasses
    | IsrRequestArrives
    | IsrResponseArrives
    | IsrResponseLost
    | Killed
    | LosesPower
    | Starts
)

_READ: tuple[tuple[str, Callable[..., Move]], ...] = (
    # Actions of the published specification
    (r"the controller elects (\d+), epoch (\d+)", Elects),
    (r"the controller sees (\d+) fail, epoch (\d+)", Fails),
    (r"(\d+) becomes leader, epoch (\d+)", Learns),
    (r"(\d+) begins to follow (\d+), epoch (\d+)", Follows),
    (r"(\d+) takes a write", Writes),
    (r"(\d+) raises its high watermark, .*", Commits),
    (r"(\d+) takes (\d+) out of the ISR", LeavesIsr),
    (r"(\d+) takes (\d+) into the ISR", JoinsIsr),
    (r"(\d+) truncates as (\d+) has it", Fetches),
    # Actions of both
    (r"(\d+) fetches from (\d+)", Fetches),
    # Actions of our model
    (r"the session of (\d+) ends", SessionEnds),
    (r"(\d+) is heard again", HeardAgain),
    (r"(\d+) learns what the controller decided", Learns),
    (r"a record is written to (\d+)", Writes),
    (r"the lag time passes for .* on (\d+)", LagPasses),
    (r"(\d+) asks for an ISR .*", LagPasses),
    (r"the controller answers the AlterPartition of (\d+)", IsrRequestArrives),
    (r"the answer to the AlterPartition of (\d+) arrives", IsrResponseArrives),
    (r"the AlterPartition of (\d+) is lost", IsrResponseLost),
    (r"(\d+) is killed", Killed),
    (r"(\d+) loses power", LosesPower),
    (r"(\d+) starts", Starts),
)


class NotReplayable(UsageError):
    """A counterexample has an action that the harness cannot bring about."""


def read(action: str) -> Move:
    """Parse an action of a trace."""
    for pattern, move in _READ:
        if (matched := re.fullmatch(pattern, action)) is not None:
            return move(*map(int, matched.groups()))
    raise NotReplayable(f"{action!r} cannot be brought about on a live cluster")
