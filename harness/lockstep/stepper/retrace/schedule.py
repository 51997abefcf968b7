"""In which order the actions of a counterexample are taken on a cluster.

A trace may have the controller decide long before anybody hears of it, in any order: a LeaderAndIsr request of the
published specification can be read for ever. A broker of a real cluster hears of what was decided last. So decisions
are put off until somebody learns of them or until the ISR changes, and what is learned comes before the next one where
the learner does nothing in between. The broken machine could go this way too, as far as its replicas can tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lockstep.stepper.retrace.moves import (
    Elects,
    Fails,
    Follows,
    HeardAgain,
    Joins,
    Learns,
    Leaves,
    Move,
    SessionEnds,
)


class Placed(NamedTuple):
    """A move, and the position of its action in the trace, from 0 on."""

    move: Move
    position: int
    version: int | None = None
    """Which version of the partition the controller decides on by it, or which a broker learns."""


def ordered(moves: Sequence[Placed]) -> tuple[Placed, ...]:
    """The same moves, in an order in which they can be made."""
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
    """How many of the decisions that were put off must come before a move."""
    if isinstance(placed.move, Leaves | Joins):
        return len(undecided)
    if isinstance(placed.move, Learns | Follows):
        return sum(not _later(decision, placed) for decision in undecided)
    return 0


def _place(learning: Placed, taken: Sequence[Placed]) -> int:
    """Before the decision after the one that is learned of, unless the learner has done something since."""
    later = (at for at, placed in enumerate(taken) if _later(placed, learning))
    place = next(later, len(taken))
    return len(taken) if any(_does(learning.move[0], placed.move) for placed in taken[place:]) else place


def _later(placed: Placed, learning: Placed) -> bool:
    """Whether a decision comes after the one that is learned of."""
    if placed.version is None or learning.version is None or isinstance(placed.move, Learns | Follows):
        return False
    return placed.version > learning.version


def _does(broker: int | None, move: Move) -> bool:
    """Whether a broker has part in what happens, other than being decided upon."""
    match move:
        case Elects() | Fails() | SessionEnds() | HeardAgain():
            return False
        case Learns() | Follows():
            return move.broker == broker
        case _:
            return broker in move
