"""Runs one walk on a live cluster, from the creation of its topic to its result."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lockstep.clients.wire.coordinators import GroupProtocol
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.config import COMMON, KRAFT
from lockstep.cluster.node import NodeState
from lockstep.errors import ClusterError
from lockstep.network.conditions import Open
from lockstep.stepper.controls.wrong_models import WrongModel
from lockstep.stepper.driver.actions import Step
from lockstep.stepper.driver.broker_index import BrokerIndex
from lockstep.stepper.driver.codec import WRITE_TIMEOUT_MS
from lockstep.stepper.driver.driver import Done, Driver
from lockstep.stepper.driver.groups.driver import GroupDriver, times_of
from lockstep.stepper.driver.situation import Situation
from lockstep.stepper.driver.timers import Timing
from lockstep.stepper.model.belief import BeliefTooLarge
from lockstep.stepper.model.client_requests import as_asked
from lockstep.stepper.model.divergence import Divergence
from lockstep.stepper.model.events import Events
from lockstep.stepper.observers import follow
from lockstep.stepper.observers.decisions import ControllerObserver
from lockstep.stepper.walk.generator import Walk
from lockstep_model.parameters import Parameters, parameters_for
from lockstep_model.verdicts import RunVerdict

MIN_ISR = 2
ATTEMPTS = 5
"""How many topics are created until one is still in its first partition epoch when the observer begins.

On a busy machine a broker session may expire by itself, and the controller then changes a new partition at once.
"""
OVERRIDES = {
    "replica.fetch.wait.max.ms": "50",
    "group.consumer.session.timeout.ms": "6000",
    "offsets.retention.check.interval.ms": "86400000",
}
"""Broker configs for walks: followers fetch often, so that an action that waits for the ISR is short; sessions of
consumers outlast a few actions; and no group expires."""

Steps = Callable[[Situation, Done | None], Step | None]
"""Returns the next action, given the situation and the result of the last action; None at the end of the walk."""
Script = Callable[[Situation], Generator[Step, tuple[Situation, Done], None]]
"""A generator of actions that is sent, after each of them, the new situation and the result."""


@dataclass(kw_only=True)
class Walked:
    """A walk that was taken: its actions and events, and the divergence if there was one."""

    topic: str
    steps: list[Done] = field(default_factory=list)
    events: list[Events] = field(default_factory=list)
    divergence: Divergence | None = None
    diverged_at: Step | None = None
    """The last action: the one that diverged, if there is a divergence."""
    decisions: tuple[str, ...] = ()
    """The controller's decisions during the action that diverged."""
    began_ns: int = 0
    """Wall-clock times of the last action's begin and end, to find it in the node logs."""
    ended_ns: int = 0
    undecided: str | None = None
    """Why there is no verdict, if the belief became too large."""
    seconds: float = 0.0

    @property
    def verdict(self) -> RunVerdict:
        if self.divergence is not None:
            return RunVerdict.VIOLATION
        return RunVerdict.PASS if self.undecided is None else RunVerdict.UNDECIDED


def parameters_of(cluster: Cluster) -> Parameters:
    """The model parameters of this cluster's Kafka version, mode and features."""
    spec = cluster.spec
    return parameters_for(spec.kafka, spec.mode, spec.features, min_isr=MIN_ISR, replication=len(cluster.broker_ids))


def random_steps(seed: int, steps: int) -> Steps:
    """A number of actions, drawn from this seed."""
    walk = Walk(seed=seed)
    left = iter(range(steps))
    return lambda situation, _: None if next(left, None) is None else walk.step(situation)


def scripted(script: Script) -> Steps:
    """The actions of a script."""
    running: Generator[Step, tuple[Situation, Done], None] | None = None

    def next_step(situation: Situation, done: Done | None) -> Step | None:
        nonlocal running
        try:
            if running is None or done is None:
                running = script(situation)
                return next(running)
            return running.send((situation, done))
        except StopIteration:
            return None

    return next_step


def walk(
    cluster: Cluster,
    steps: Steps,
    parameters: Parameters,
    on_step: Callable[[Done], None],
    *,
    replicas: tuple[int, ...] | None = None,
    wrong: WrongModel | None = None,
    on_divergence: Callable[[Divergence], None] = lambda _: None,
) -> Walked:
    """Take a walk on a new topic with one partition. The first of `replicas` is its preferred leader.

    A `wrong` model, if given, is tracked instead of the right one, and the cluster should seem to diverge from it.
    After a divergence `on_divergence` is called before the cluster is restored: links open, all brokers running.
    """
    walked = Walked(topic=f"lockstep-{uuid.uuid4().hex[:8]}")
    config = {"min.insync.replicas": str(parameters.min_isr)}
    model = parameters if wrong is None else wrong.parameters(parameters)
    reading = as_asked if wrong is None else wrong.reading
    # The consumers' topic first: a broker whose metadata shows the walk's topic has passed it to its group coordinator.
    with (
        _consumers(cluster, walked.topic, model) as groups,
        _new_topic(cluster, walked, replicas or cluster.broker_ids, config) as observer,
    ):
        began = time.monotonic()
        with Driver(cluster, walked.topic, observer, model, timing_of(cluster), reading, groups) as driver:
            walked.events = driver.feed.events
            try:
                done: Done | None = None
                while (step := steps(driver.situation(), done)) is not None:
                    walked.diverged_at = step
                    walked.began_ns = time.time_ns()
                    done = driver.take(step)
                    walked.steps.append(done)
                    on_step(done)
            except Divergence as divergence:
                walked.divergence = divergence
                walked.decisions = tuple(driver.observation.decisions)
                walked.ended_ns = time.time_ns()
                on_divergence(divergence)
            except BeliefTooLarge as error:
                walked.undecided = str(error)
            finally:
                walked.seconds = time.monotonic() - began
                walked.ended_ns = walked.ended_ns or time.time_ns()
                _restore(cluster)
    return walked


@contextmanager
def _new_topic(
    cluster: Cluster, walked: Walked, replicas: tuple[int, ...], config: dict[str, str]
) -> Iterator[ControllerObserver]:
    """Create a topic and observe it from partition epoch 0; another topic if the controller changed it before that."""
    name = walked.topic
    for attempt in range(ATTEMPTS):
        walked.topic = f"{name}-{attempt}" if attempt else name
        cluster.place_topic(walked.topic, replicas, config)
        with follow(cluster, walked.topic, 0) as observer:
            if observer.current.partition.partition_epoch == 0:
                yield observer
                return
    raise ClusterError(f"the controller decided about {walked.topic} before the first step: the cluster is not at rest")


def _consumers(cluster: Cluster, topic: str, parameters: Parameters) -> GroupDriver:
    """The consumers of a walk, with one group for each group protocol that the cluster supports."""
    new = parameters.groups.new_coordinator
    protocols = tuple(GroupProtocol) if new else (GroupProtocol.CLASSIC,)
    times = times_of({**COMMON, **cluster.spec.overrides})
    return GroupDriver(cluster, f"{topic}-read", protocols, times, BrokerIndex(cluster.broker_ids))


def timing_of(cluster: Cluster) -> Timing:
    settings = {**COMMON, **KRAFT, **cluster.spec.overrides}
    return Timing(
        brokers=range(len(cluster.broker_ids)),
        session_ms=int(settings["broker.session.timeout.ms"]),
        lag_ms=int(settings["replica.lag.time.max.ms"]),
        write_ms=WRITE_TIMEOUT_MS,
    )


def _restore(cluster: Cluster) -> None:
    """Open every link, and have every broker run again."""
    for link, condition in cluster.links.conditions().items():
        if condition != Open():
            cluster.links.mend(link)
    for id_ in cluster.broker_ids:
        match cluster.broker(id_).state():
            case NodeState.PAUSED:
                cluster.broker(id_).resume()
            case NodeState.STOPPED:
                cluster.broker(id_).start()
    cluster.wait_ready()
