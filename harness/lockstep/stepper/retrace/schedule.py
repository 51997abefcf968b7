"""The order in which the actions of a counterexample are taken on a live cluster.

In the published specification a broker may apply any LeaderAndIsr request ever sent, however old. A live broker applies
the controller's latest decision. So a decision is deferred until a broker learns of it or the ISR changes, and a
broker's learning is moved ahead of the next decision, if that broker does nothing in between. The broken protocol
permits this order as well: to each replica it looks the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lockstep.stepper.retrace.moves import (
    Elects,
    Fails,
    Follows,
    HeardAgain,
    JoinsIsr,
    Learns,
    LeavesIsr,
    Move,
    SessionEnds,
)


class Placed(NamedTuple):
    """A move, and the position of its action in the trace, counted from 0."""

    move: Move
    position: int
    version: int | None = None
    """The version of the partition that the controller decides, or that a broker learns, by this move."""


def ordered(moves: Sequence[Placed]) -> tuple[Placed, ...]:
    """The same moves, in an order that a live cluster can take."""
    taken: list[Placed] = []
    undecided: list[Placed] = []
    for placed in moves:
        if isinstance(placed.move, Elects | Fails):
            undecided.append(placed)
            continue
        needed = _needed(placed, undecided)
        taken += undecided[:needed]
        del undecided[:needed]
        if isinstance(placed.move, Learns | Follows):
            taken.insert(_place(placed, taken), placed)
        else:
            taken.append(placed)
    return *taken, *undecided


def _needed(placed: Placed, undecided: Sequence[Placed]) -> int:
    """How many of the deferred decisions must come before a move."""
    if isinstance(placed.move, LeavesIsr | JoinsIsr):
        return len(undecided)
    if isinstance(placed.move, Learns | Follows):
        return sum(not _later(decision, placed) for decision in undecided)
    return 0


def _place(learning: Placed, taken: Sequence[Placed]) -> int:
    """The index before the first later decision; the end, if the learning broker has acted since that decision."""
    later = (at for at, placed in enumerate(taken) if _later(placed, learning))
    place = next(later, len(taken))
    return len(taken) if any(_does(learning.move[0], placed.move) for placed in taken[place:]) else place


def _later(placed: Placed, learning: Placed) -> bool:
    """Whether a decision is later than the one that a broker learns of."""
    if placed.version is None or learning.version is None or isinstance(placed.move, Learns | Follows):
        return False
    return placed.version > learning.version


def _does(broker: int | None, move: Move) -> bool:
    """Whether a broker acts in this move. The subject of a controller decision does not."""
    match move:
        case Elects() | Fails() | SessionEnds() | HeardAgain():
            return False
        case Learns() | Follows():
            return move.broker == broker
        case _:
            return broker in move
