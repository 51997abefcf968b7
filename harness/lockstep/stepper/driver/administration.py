"""Administration: leader elections, reassignments, and changes of the topic's min.insync.replicas."""

from __future__ import annotations

from lockstep.clients.wire.elections import Election as WireElection
from lockstep.clients.wire.elections import elect_leader
from lockstep.clients.wire.reassignments import reassign
from lockstep.clients.wire.refusals import Refused
from lockstep.stepper.driver.actions import Administer, Elect, Reassign, SetMinIsr
from lockstep.stepper.driver.context import Context
from lockstep.stepper.driver.observation import Observation
from lockstep.stepper.driver.topic_configs import set_min_isr, wait_for_settings
from lockstep.stepper.model.controller_inference import Occasions
from lockstep.stepper.model.events import Configured
from lockstep.wait import WaitTimeout


class Administration:
    """Sends administrative requests to the controller; their effect is observed in the controller's decisions."""

    def __init__(self, context: Context, observation: Observation) -> None:
        self._cluster = context.cluster
        self._topic = context.topic
        self._number = context.number
        self._feed = context.feed
        self._observation = observation
        self._unanswered = Occasions()
        """Requests to which the controller did not respond: it may carry them out at any later time."""
        self._min_isr: tuple[int, ...] = (context.feed.tracker.parameters.min_isr,)
        """min.insync.replicas values that a broker may still apply: any not confirmed superseded, then the latest."""

    @property
    def min_isr(self) -> int:
        """The latest min.insync.replicas of the topic."""
        return self._min_isr[-1]

    def take(self, step: Administer) -> str:
        """Send an administrative request, and observe its effect."""
        if isinstance(step, SetMinIsr):
            return self._set_min_isr(step.value)
        return self._ask(step)

    def _ask(self, step: Elect | Reassign) -> str:
        """A controller that does not respond, because it is paused or cut off, may carry out the request later."""
        try:
            self._ask_controller(step)
        except OSError as error:
            self._observation.observe()
            self._unanswered = self._feed.occasions
            return str(error)
        except Refused as error:
            answer = str(error)
        else:
            answer = "done"
        self._observation.observe()
        late = self._unanswered
        self._feed.occasions = self._feed.occasions._replace(
            preferred=late.preferred, unclean=late.unclean, assignment=late.assignment
        )
        return answer

    def _ask_controller(self, step: Elect | Reassign) -> None:
        told = {view.controller for view in self._cluster.ask_all().values()}
        address = self._cluster.direct(next(id_ for id_ in told if id_ in self._cluster.broker_ids))
        feed, access = self._feed, self._cluster.access()
        if isinstance(step, Elect):
            feed.occasions = feed.occasions._replace(preferred=not step.unclean, unclean=step.unclean)
            election = WireElection.UNCLEAN if step.unclean else WireElection.PREFERRED
            elect_leader(address, self._topic, 0, election, access=access)
        else:
            assignment = tuple(self._number(id_) for id_ in step.replicas)
            feed.occasions = feed.occasions._replace(assignment=assignment)
            reassign(address, self._topic, 0, step.replicas, access=access)

    def _set_min_isr(self, value: int) -> str:
        """Brokers may apply the old or the new value until every running broker is known to apply the new one."""
        self._go_by(*self._min_isr, value)
        self._feed.occasions = self._feed.occasions._replace(min_isr=True)
        try:
            set_min_isr(self._cluster, self._topic, value)
        except (WaitTimeout, Refused) as error:  # the change may still take effect
            self._observation.observe()
            return str(error)
        known = wait_for_settings(self._cluster, self._topic, value)
        self._observation.observe()
        self._feed.occasions = self._feed.occasions._replace(min_isr=False)
        if known:
            self._go_by(value)
        return "done" if known else "done, and not known to everyone"

    def _go_by(self, *min_isr: int) -> None:
        self._min_isr = tuple(dict.fromkeys(min_isr))
        self._feed.tell(Configured(min_isr=self._min_isr))
