"""Decision watch: polls an observer of the controller until a decision is seen."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from lockstep.stepper.observers import ControllerObserver, Decision
from lockstep.wait import wait_until
from lockstep_model.controller import Controller
from lockstep_model.registration import BrokerId

SEEN_S = 90.0


class DecisionWatch:
    """All decisions that an observer has told, in their order."""

    def __init__(self, observer: ControllerObserver) -> None:
        self.observer = observer
        self.decisions: list[Decision] = []
        self._reached = 0

    def until(self, holds: Callable[[Controller], bool], what: str) -> Decision:
        """The first decision after which this holds, of those that are not before the last that was waited for."""

        def found() -> int | None:
            self.decisions += self.observer.poll()
            later = range(self._reached, len(self.decisions))
            return next((number + 1 for number in later if holds(self.decisions[number].controller)), None)

        number = wait_until(found, timeout_s=SEEN_S, what=what)
        assert number is not None
        self._reached = number - 1
        return self.decisions[self._reached]

    @property
    def controllers(self) -> list[Controller]:
        """All that the controller knew, one after the other."""
        return [known for decision in self.decisions for known in (*decision.through, decision.controller)]

    def require_order(self) -> None:
        """What holds for all decisions that were ever told."""
        for before, after in pairwise(self.decisions):
            assert before.position < after.position
            assert before.after_ns <= after.after_ns
            assert before.before_ns <= after.before_ns
        for decision in self.decisions:
            assert decision.after_ns < decision.before_ns
            assert decision.causes
            assert len(decision.through) <= len(decision.causes) - 1


def fenced(controller: Controller, broker: BrokerId) -> bool:
    known = controller.broker(broker)
    return known is not None and known.fenced


def epoch_of(controller: Controller, broker: BrokerId) -> int:
    known = controller.broker(broker)
    assert known is not None
    return known.epoch
