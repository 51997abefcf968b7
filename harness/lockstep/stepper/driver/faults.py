"""Faults of a walk: ends, pauses and starts brokers, cuts replication links, holds back control-plane messages."""

from __future__ import annotations

from lockstep.faults.support.log_directories import log_of
from lockstep.network.conditions import Open
from lockstep.network.topology import Link
from lockstep.spec.cluster import Listener
from lockstep.stepper.driver import codec
from lockstep.stepper.driver.actions import (
    Crash,
    Cut,
    Fault,
    Kill,
    Mend,
    Pause,
    Release,
    Resume,
    Start,
    Stop,
    Withhold,
)
from lockstep.stepper.driver.broker_states import BrokerStates
from lockstep.stepper.driver.connections import Connections
from lockstep.stepper.driver.context import Context
from lockstep.stepper.driver.control_plane_faults import REQUESTS_ONLY, ControlPlaneFaults
from lockstep.stepper.driver.coordinator_monitor import CoordinatorMonitor
from lockstep.stepper.driver.groups.driver import GroupDriver
from lockstep.stepper.driver.observation import Observation
from lockstep.stepper.model.events import BrokerEnded, Found, ShutdownBegan, Started
from lockstep.stepper.observers.stopped_replicas import on_disk


class ClusterFaults:
    """Injects and heals faults, and tells each with what is observed around it.

    What happened before a fault is observed before the fault is told, and what follows its end after that.
    """

    def __init__(
        self,
        context: Context,
        connections: Connections,
        brokers: BrokerStates,
        control_plane: ControlPlaneFaults,
        coordinator: CoordinatorMonitor,
        observation: Observation,
        groups: GroupDriver | None,
    ) -> None:
        self._cluster = context.cluster
        self._topic = context.topic
        self._number = context.number
        self._feed = context.feed
        self._connections = connections
        self._brokers = brokers
        self._control_plane = control_plane
        self._coordinator = coordinator
        self._observation = observation
        self._groups = groups

    def take(self, step: Fault) -> str:
        """Inject or heal a fault."""
        self._coordinator.before_fault(step.follower if isinstance(step, Cut | Mend) else step.broker)
        match step:
            case Kill() | Crash() | Stop():
                return self._end(step)
            case Start():
                return self._start(step.broker)
            case Pause() | Resume():
                return self._hold(step)
            case Cut() | Mend():
                return self._link(step)
            case Withhold() | Release():
                return self._withhold(step)

    def _end(self, step: Kill | Crash | Stop) -> str:
        """End a broker's process. Responses and decisions from before are observed before the model's broker ends."""
        feed = self._feed
        number = self._number(step.broker)
        clean = isinstance(step, Stop)
        node = self._cluster.broker(step.broker)
        if clean:
            feed.occasions = feed.occasions._replace(leaving=feed.occasions.leaving | {number})
            feed.tell(ShutdownBegan(broker=number))
            node.stop()
        else:
            node.kill()
        if isinstance(step, Crash):
            log_of(self._cluster, node, f"{self._topic}-0").cut(flushed=step.end, keep=0)
        self._observation.observe()
        if self._groups is not None:
            self._groups.observe()
        feed.tell(BrokerEnded(broker=number, clean=clean, cut=isinstance(step, Crash)))
        left = feed.occasions.left | {number} if clean else feed.occasions.left - {number}
        feed.occasions = feed.occasions._replace(left=left)
        self._connections.disconnect(step.broker)
        return self._look_at_disk(step.broker)

    def _look_at_disk(self, broker: int) -> str:
        """Read a stopped broker's replica from its log directory: log start, records, checkpointed high watermark."""
        replica = on_disk(self._cluster, broker, self._topic, 0)
        if replica is None:
            return "ended"
        found = Found(
            broker=self._number(broker),
            start=replica.start,
            records=tuple(map(codec.logged, replica.records)),
            high_watermark=min(max(replica.high_watermark or 0, replica.start), replica.end),
        )
        self._feed.tell(found)
        return f"ended with its log at {replica.end} and its high watermark at {found.high_watermark}"

    def _start(self, broker: int) -> str:
        self._cluster.broker(broker).start()
        feed, number = self._feed, self._number(broker)
        feed.tell(Started(broker=number))
        feed.occasions = feed.occasions._replace(leaving=feed.occasions.leaving - {number})
        self._observation.observe()
        return "started"

    def _hold(self, step: Pause | Resume) -> str:
        feed, number = self._feed, frozenset({self._number(step.broker)})
        if isinstance(step, Pause):
            self._cluster.broker(step.broker).pause()
            self._observation.observe()
            feed.surround(feed.surroundings._replace(paused=feed.surroundings.paused | number))
            return "paused"
        self._cluster.broker(step.broker).resume()
        feed.surround(feed.surroundings._replace(paused=feed.surroundings.paused - number))
        self._observation.observe()
        return "resumed"

    def _link(self, step: Cut | Mend) -> str:
        feed = self._feed
        link = Link(source=f"broker-{step.follower}", destination=f"broker-{step.leader}", listener=Listener.REPL)
        pair = frozenset({(self._number(step.follower), self._number(step.leader))})
        if isinstance(step, Cut):
            self._cluster.links.cut(link)
            self._observation.observe()
            feed.surround(feed.surroundings._replace(cut=feed.surroundings.cut | pair))
            return "cut"
        self._cluster.links.impose(link, Open() if step.answers else REQUESTS_ONLY)
        feed.surround(feed.surroundings._replace(cut=feed.surroundings.cut - pair))
        self._observation.observe()
        return "mended"

    def _withhold(self, step: Withhold | Release) -> str:
        """Hold back, or let pass, one kind of control-plane message between a broker and the controller.

        The model is told only about metadata and AlterPartition requests: for the others it already permits any delay.
        A broker may still apply metadata that it received just before, so a scenario should idle before it relies on
        the fault.
        """
        withholds = isinstance(step, Withhold)
        self._control_plane.change(step.broker, step.talk, withheld=withholds)
        if withholds:
            self._observation.observe()
        mute, deaf = self._brokers.mute(), self._brokers.deaf()
        self._feed.surround(self._feed.surroundings._replace(deaf=deaf, mute=mute))
        if not withholds:
            self._observation.observe()
        return "withheld" if withholds else "let pass"
