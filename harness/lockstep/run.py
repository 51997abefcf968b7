"""One run, from plan to verdict: cluster, clients, faults, final read, seal, judgement, report."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from lockstep.checker import SparkStarter, Verdict, judge
from lockstep.clients import librdkafka
from lockstep.clients.wire.offsets import ask_log_end
from lockstep.cluster.backends import Backend, prepare
from lockstep.cluster.brokers import Brokers
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.description import describe
from lockstep.cluster.external import ExternalCluster, evidence_kept, keep_topics, reach, tried, with_own_topics
from lockstep.cluster.external_spec import External, ExternalSpec
from lockstep.errors import ClusterError
from lockstep.faults.injector import Injector
from lockstep.heal import owning
from lockstep.history.recorder import Recorder
from lockstep.history.store import seal
from lockstep.host.java import Java, find_java
from lockstep.plan.plan import Heal, Hold, Inject, Operate, Operation, Plan, TopicPlan, write_plan
from lockstep.progress import Progress
from lockstep.recovery.ledger import Ledger
from lockstep.rundir import RunDirectory, run_command
from lockstep.spec.cluster import ClusterSpec
from lockstep.validation import require_fit, require_replicas
from lockstep.workload.final_read import read_to_end
from lockstep.workload.load import Load
from lockstep.workload.observer import MetadataObserver
from lockstep_model.verdicts import RunVerdict

CHECK_INTERVAL_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A run that came to its end: where it is, and what was found."""

    directory: Path
    verdict: Verdict


def run(
    plan: Plan,
    *,
    spec: ClusterSpec | ExternalSpec,
    backend: Backend,
    runs: Path,
    progress: Progress,
    spark: SparkStarter,
) -> Finished:
    """Carry out a plan, on a fresh cluster or one that is there, and judge it with a Spark that the caller stops."""
    require_fit(plan, spec, backend)
    java = find_java()
    described, open_cluster = _prepared(plan, spec, backend, java, progress)
    directory = RunDirectory.create(
        runs,
        scenario=plan.scenario,
        seed=plan.seed,
        command=run_command(plan, described, backend),
        spec=described,
        backend=backend,
        java=java.version,
        librdkafka=librdkafka.version(),
    )
    if isinstance(described, External):
        plan = with_own_topics(plan, directory.info.run)
    write_plan(plan, directory.path)
    progress.say(f"{plan.scenario}, seed {plan.seed}: {'; '.join(plan.in_words())}")
    progress.say(f"recording to {directory.path}")
    with owning(directory.path) as ledger, evidence_kept(ledger):
        with open_cluster(directory.path, ledger) as cluster:
            with directory.phase("start"), progress.action(_opening(described, backend)):
                cluster.start()
                if isinstance(cluster, Cluster):
                    describe(cluster)
            spark.start()  # it comes up while the cluster runs
            with (
                librdkafka.logging_to(directory.path / "clients.log"),
                Recorder(directory.path, directory.info.run) as recorder,
            ):
                _exercise(plan, cluster, directory, recorder, progress)
            with directory.phase("stop"):
                cluster.stop()
        with directory.phase("seal"):
            seal(directory.path)
        with progress.action("judging the history"):
            (verdict,) = judge([directory.path], spark.session())
        if verdict.verdict is RunVerdict.PASS:
            for data in directory.path.glob("nodes/*/data"):
                shutil.rmtree(data)
        else:
            keep_topics(ledger)
    return Finished(directory=directory.path, verdict=verdict)


def _prepared(
    plan: Plan, spec: ClusterSpec | ExternalSpec, backend: Backend, java: Java, progress: Progress
) -> tuple[ClusterSpec | External, Callable[[Path, Ledger], Cluster | ExternalCluster]]:
    """The cluster as it will be, or as it was found, and how to open it."""
    if isinstance(spec, ExternalSpec):
        if ignored := spec.ignored():
            progress.say(f"{spec.client_config}: {', '.join(ignored)} ignored, as it does not concern access")
        found = reach(spec)
        require_replicas(plan, len(found.brokers))
        found = tried(spec, found, plan.topics)
        return found, lambda _, ledger: ExternalCluster(spec, found, ledger)
    spec = msgspec.structs.replace(spec, overrides=plan.cluster | spec.overrides)
    return spec, prepare(spec, backend, java, progress, also=_upgrades(plan))


def _opening(spec: ClusterSpec | External, backend: Backend) -> str:
    if isinstance(spec, External):
        return f"looking for {spec.in_words()}"
    return f"starting {spec.in_words()} on {backend}"


def _exercise(
    plan: Plan, cluster: Cluster | ExternalCluster, directory: RunDirectory, recorder: Recorder, progress: Progress
) -> None:
    """Load and faults, then heal, then read everything to its end."""
    topics = {topic.name: (topic, _create(cluster, topic)) for topic in plan.topics}
    injector = Injector(cluster, recorder)
    load = Load(workloads=plan.workloads, topics=topics, access=cluster.access(), recorder=recorder, seed=plan.seed)
    with _observing(cluster, recorder, tuple(topics)):
        with directory.phase("load"), _abandoned_on_error(load):
            load.start()
            _carry_out(plan, injector, load, progress)
            load.stop_writing()
        with directory.phase("heal"), _abandoned_on_error(load):
            injector.heal_all()
            readable = {topic.name: _settled(cluster, topic, progress) for topic in plan.topics}
            load.stop_reading()
        with directory.phase("final-read"), progress.action("reading every partition to its end"):
            for topic, topic_id in topics.values():
                with _unproven_on_error(cluster, topic, progress):
                    ends = _log_ends(cluster, topic, readable[topic.name])
                    read_to_end(recorder, cluster.access(), topic, topic_id, ends)


def _carry_out(plan: Plan, injector: Injector, load: Load, progress: Progress) -> None:
    for step in plan.steps:
        match step:
            case Hold():
                with progress.action(f"clients at work for {step.seconds:g} s"):
                    _hold(step.seconds, load)
            case Inject():
                with progress.action(f"{step.fault}: {step.target}"):
                    injector.inject(step)
            case Heal():
                with progress.action(f"healing step {step.of}"):
                    injector.heal(step.of)
            case Operate():
                with progress.action(str(step)):
                    injector.operate(step, progress.say)


def _hold(seconds: float, load: Load) -> None:
    """Time passes on purpose here: it is the plan's, not a wait for something to be ready."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        load.check()
        time.sleep(min(left, CHECK_INTERVAL_S))


def _create(cluster: Brokers, topic: TopicPlan) -> str:
    """Create a planned topic and return its id."""
    cluster.create_topic(
        topic.name, partitions=topic.partitions, replication=topic.replication, config=topic.properties
    )
    return cluster.leader(topic.name, 0).topic_id


def _settled(cluster: Cluster | ExternalCluster, topic: TopicPlan, progress: Progress) -> Collection[int]:
    """Wait until a topic can be read, and return the partitions that can be.

    A cluster of ours is whole again first; of one that is not ours we can only tell what is missing.
    """
    if isinstance(cluster, Cluster):
        cluster.wait_in_sync(topic.name, topic.partitions)
        return range(topic.partitions)
    led = cluster.wait_led(topic.name, topic.partitions)
    for missing in cluster.note_not_in_sync(topic.name):
        progress.say(f"not in sync: {missing}")
    return led


def _log_ends(cluster: Brokers, topic: TopicPlan, partitions: Collection[int]) -> dict[int, int]:
    """The leader's LEO of each partition, which may be above the high watermark."""
    leaders = {partition: cluster.leader(topic.name, partition).leader for partition in partitions}
    try:
        return {
            partition: ask_log_end(cluster.direct(leader), topic.name, partition, access=cluster.access())
            for partition, leader in leaders.items()
        }
    except OSError as error:
        raise ClusterError(f"a leader of {topic.name} does not tell where its log ends: {error}") from error


@contextmanager
def _unproven_on_error(cluster: Cluster | ExternalCluster, topic: TopicPlan, progress: Progress) -> Iterator[None]:
    """What an external cluster does not let us read to its end has no proof, and is judged without: it may not heal."""
    try:
        yield
    except ClusterError as error:
        if isinstance(cluster, Cluster):
            raise
        progress.say(f"{topic.name} could not be read to its end: {error}")


@contextmanager
def _observing(cluster: Brokers, recorder: Recorder, topics: tuple[str, ...]) -> Iterator[None]:
    observer = MetadataObserver(cluster, recorder, topics)
    observer.start()
    try:
        yield
    finally:
        observer.stop()


@contextmanager
def _abandoned_on_error(load: Load) -> Iterator[None]:
    try:
        yield
    except BaseException:
        load.abandon()
        raise


def _upgrades(plan: Plan) -> set[str]:
    """Versions that are needed later than the others, and must be there just as early."""
    return {step.to for step in plan.steps if isinstance(step, Operate) and step.operation is Operation.UPGRADE}
