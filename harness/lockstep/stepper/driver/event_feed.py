"""Event feed: gives the tracker each event, and keeps what the harness itself knows about the cluster."""

from __future__ import annotations

from lockstep.stepper.model.client_requests import Reading, as_asked
from lockstep.stepper.model.controller_inference import Occasions
from lockstep.stepper.model.events import Began, Events, Surrounded
from lockstep.stepper.model.state import Surroundings
from lockstep.stepper.model.tracker import BeliefTracker
from lockstep_model.parameters import Parameters


class EventFeed:
    """The events of a walk in order, the tracker that gets them, and the facts of the next events."""

    def __init__(self, began: Began, parameters: Parameters, reading: Reading = as_asked) -> None:
        self.events: list[Events] = [began]
        """All events so far, in the order in which the tracker got them."""
        self.tracker = BeliefTracker(parameters, began, reading=reading)
        self.surroundings = Surroundings()
        """Faults in force, and timeouts that may have passed, as the tracker was last told."""
        self.occasions = Occasions()
        """What may cause the controller's next decision."""

    def tell(self, event: Events) -> None:
        """Give an event to the tracker; raises `Divergence` if no state of the belief explains it."""
        self.events.append(event)
        self.tracker.tell(event)

    def surround(self, surroundings: Surroundings) -> None:
        """Tell the surroundings, if they have changed."""
        if surroundings != self.surroundings:
            self.surroundings = surroundings
            self.tell(Surrounded(surroundings=surroundings))
