"""A cluster that is there already, tested by its bootstrap servers alone."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from lockstep.checker import SparkStarter
from lockstep.checker.conditions import read_conditions
from lockstep.cli.main import run_cli
from lockstep.clients.wire.metadata import ClusterView
from lockstep.cluster.backends import Backend
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.external import (
    KIND,
    PREFIX,
    ExternalCluster,
    evidence_kept,
    heal_topic,
    keep_topics,
    reach,
    tried,
    with_own_topics,
    with_planned_topics,
)
from lockstep.cluster.external_spec import ExternalSpec
from lockstep.errors import CheckerError, ClusterError, EnvironmentError_, UsageError
from lockstep.heal import heal, owning
from lockstep.history.store import open_history
from lockstep.plan.builder import PlanBuilder
from lockstep.plan.plan import Plan, TopicPlan, read_plan
from lockstep.progress import Progress
from lockstep.recovery.ledger import LEDGER, Entry, Ledger, read_ledger
from lockstep.run import Finished, run
from lockstep.spec.cluster import Listener
from lockstep.wait import wait_until
from lockstep_model.guarantees import Configuration
from lockstep_reports import write_all
from tests.command import Lockstep

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("process-cluster")]

USAGE, ENVIRONMENT = 4, 3


@pytest.fixture
def spec(lockstep_cluster: Cluster) -> ExternalSpec:
    """Where the cluster is: one of its brokers is enough."""
    return ExternalSpec(bootstrap_servers=lockstep_cluster.bootstrap().split(",")[1])


def topics_of(cluster: Cluster) -> set[str]:
    return {partition.topic for view in cluster.ask_all(None).values() for partition in view.partitions}


def wait_gone(cluster: Cluster, topic: str) -> None:
    wait_until(lambda: topic not in topics_of(cluster), timeout_s=60, what=f"{topic} to be gone")


def small_plan(describe: Callable[[PlanBuilder], None] = lambda _: None) -> Plan:
    plan = PlanBuilder("small", 5)
    orders = plan.topic("orders", partitions=1, replication=3, min_isr=2)
    plan.write(orders, clients=1, rate_per_s=100)
    plan.read(orders, clients=1)
    plan.hold(seconds=1)
    describe(plan)
    return plan.build()


class Meanwhile(Progress):
    """Tells nobody what a run does, but does something itself as soon as the run gets to one of its actions."""

    def __init__(self, at: str, do: Callable[[], None]) -> None:
        super().__init__(quiet=True)
        self._at = at
        self._do = do
        self.said: list[str] = []

    def say(self, line: str) -> None:
        self.said.append(line)

    @contextmanager
    def action(self, what: str) -> Iterator[None]:
        if what.startswith(self._at):
            self._do()
        with super().action(what):
            yield


def run_on(
    spec: ExternalSpec, plan: Plan, runs: Path, spark: SparkStarter, progress: Progress | None = None
) -> Finished:
    progress = progress or Progress(quiet=True)
    finished = run(plan, spec=spec, backend=Backend.EXTERNAL, runs=runs, progress=progress, spark=spark)
    write_all(finished.directory)
    return finished


def topic_entry(run: Path) -> Entry:
    """What the ledger says of a run's only topic."""
    (entry,) = (entry for entry in read_ledger(run / LEDGER) if entry.kind == KIND)
    return entry


def test_the_cluster_is_found_by_one_of_its_brokers(lockstep_cluster: Cluster, spec: ExternalSpec) -> None:
    found = reach(spec)
    assert found.bootstrap_servers == spec.bootstrap_servers
    assert ",".join(found.brokers.values()) == lockstep_cluster.bootstrap()
    assert list(found.brokers) == [1, 2, 3]
    assert found.cluster_id == lockstep_cluster.cluster_id
    assert found.features["eligible.leader.replicas.version"] == 1
    assert (found.protocol, found.username, found.client_config) == ("PLAINTEXT", None, None)


def test_its_brokers_are_asked_where_clients_find_them(
    lockstep_cluster: Cluster, spec: ExternalSpec, tmp_path: Path
) -> None:
    with Ledger(tmp_path) as ledger, ExternalCluster(spec, reach(spec), ledger) as external:
        external.start()
        assert external.broker_ids == (1, 2, 3)
        assert external.ask_all().keys() == {1, 2, 3}
        assert ",".join(str(external.direct(id_)) for id_ in external.broker_ids) == lockstep_cluster.bootstrap()
        assert external.incarnation(1) is None
        with pytest.raises(ClusterError, match="one client side, and no CLIENT_B"):
            external.access(Listener.CLIENT_B)
        external.stop()
    assert all(node.state().value == "running" for node in lockstep_cluster.nodes.values())


def test_a_topic_goes_when_the_run_does(lockstep_cluster: Cluster, spec: ExternalSpec, tmp_path: Path) -> None:
    with owning(tmp_path) as ledger, ExternalCluster(spec, reach(spec), ledger) as external:
        external.create_topic("external-goes", partitions=1, replication=3, config={})
        assert "external-goes" in topics_of(lockstep_cluster)
    wait_gone(lockstep_cluster, "external-goes")
    (entry,) = read_ledger(tmp_path / LEDGER)
    assert (entry.kind, entry.fields["name"], entry.fields["found"]) == ("topic", "external-goes", True)


def test_a_topic_that_is_evidence_stays(lockstep_cluster: Cluster, spec: ExternalSpec, tmp_path: Path) -> None:
    with owning(tmp_path) as ledger, ExternalCluster(spec, reach(spec), ledger) as external:
        external.create_topic("external-stays", partitions=1, replication=3, config={})
        assert keep_topics(ledger) == ["external-stays"]
    assert "external-stays" in topics_of(lockstep_cluster)
    assert heal(tmp_path).removed == ()
    (entry,) = read_ledger(tmp_path / LEDGER)
    assert entry.fields["kept"] is True


def test_a_topic_of_the_users_is_never_touched(lockstep_cluster: Cluster, spec: ExternalSpec, tmp_path: Path) -> None:
    lockstep_cluster.create_topic("theirs", partitions=1, replication=3, config={})
    with (
        pytest.raises(ClusterError, match="there is a topic theirs already, and it is not ours"),
        owning(tmp_path) as ledger,
        ExternalCluster(spec, reach(spec), ledger) as external,
    ):
        external.create_topic("theirs", partitions=1, replication=3, config={})
    assert read_ledger(tmp_path / LEDGER) == []
    assert "theirs" in topics_of(lockstep_cluster)


def test_the_topic_of_a_run_that_came_first_is_never_touched(
    lockstep_cluster: Cluster, spec: ExternalSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made after the other run has seen that there is none."""
    ask_all = ExternalCluster.ask_all

    def ask_and_be_late(self: ExternalCluster, topics: tuple[str, ...] | None = ()) -> dict[int, ClusterView]:
        views = ask_all(self, topics)
        if topics:
            monkeypatch.undo()
            lockstep_cluster.create_topic("winners", partitions=1, replication=3, config={})
        return views

    monkeypatch.setattr(ExternalCluster, "ask_all", ask_and_be_late)
    with (
        pytest.raises(ClusterError, match="topic winners was not created: topic_already_exists"),
        owning(tmp_path) as ledger,
        ExternalCluster(spec, reach(spec), ledger) as external,
    ):
        external.create_topic("winners", partitions=1, replication=3, config={})
    assert topic_entry(tmp_path).phase("failed") is not None
    assert "winners" in topics_of(lockstep_cluster)


def test_the_topics_of_a_block_that_fails_are_evidence(
    lockstep_cluster: Cluster, spec: ExternalSpec, tmp_path: Path
) -> None:
    with (  # noqa: PT012 - the block is to fail
        pytest.raises(CheckerError) as failed,
        owning(tmp_path) as ledger,
        evidence_kept(ledger),
        ExternalCluster(spec, reach(spec), ledger) as external,
    ):
        external.create_topic("external-evidence", partitions=1, replication=3, config={})
        raise CheckerError("out of memory")
    assert failed.value.__notes__ == ["left on the cluster as evidence: external-evidence"]
    assert "external-evidence" in topics_of(lockstep_cluster)
    assert topic_entry(tmp_path).fields["kept"] is True


def test_heal_deletes_the_topic_of_a_run_that_died(
    lockstep_cluster: Cluster, spec: ExternalSpec, tmp_path: Path
) -> None:
    with Ledger(tmp_path) as ledger, ExternalCluster(spec, reach(spec), ledger) as external:
        external.create_topic("external-dead", partitions=1, replication=3, config={})
    assert heal(tmp_path).removed == (f"topic external-dead at {spec.bootstrap_servers}",)
    wait_gone(lockstep_cluster, "external-dead")
    with Ledger(tmp_path) as ledger:
        again = ledger.intent(
            "topic", name="external-dead", bootstrap_servers=spec.bootstrap_servers, client_config=None
        )
        assert heal_topic(again) == [], "what is gone already is no error"
        assert not again.open


def test_the_cluster_says_beforehand_what_topics_would_be(lockstep_cluster: Cluster, spec: ExternalSpec) -> None:
    before = topics_of(lockstep_cluster)
    topic = TopicPlan(name="orders", partitions=1, replication=3, min_isr=2)
    unclean = "unclean.leader.election.enable"
    assert tried(spec, reach(spec), [topic]).overrides == {unclean: "false"}
    own = msgspec.structs.replace(topic, config={unclean: "true"})
    assert tried(spec, reach(spec), [own]).overrides == {}, "the plan says it, and the checker reads it there"
    wrong = msgspec.structs.replace(topic, config={"retention.ms": "soon"})
    with pytest.raises(ClusterError, match=r"was not created: invalid_config \(.*retention.ms"):
        tried(spec, reach(spec), [wrong])
    assert topics_of(lockstep_cluster) == before


def test_an_advertised_address_that_leads_nowhere(spec: ExternalSpec, tmp_path: Path) -> None:
    found = reach(spec)
    elsewhere = msgspec.structs.replace(found, brokers=found.brokers | {2: "127.0.0.1:1"})
    with (
        Ledger(tmp_path) as ledger,
        ExternalCluster(spec, elsewhere, ledger) as external,
        pytest.raises(ClusterError, match=r"broker 2 advertises 127.0.0.1:1 to clients, and no broker answers there"),
    ):
        external.start()


@pytest.mark.spark
def test_a_run_that_passes_leaves_nothing_on_the_cluster(
    lockstep_cluster: Cluster, spec: ExternalSpec, tmp_path: Path, lockstep_spark: SparkStarter
) -> None:
    before = topics_of(lockstep_cluster)
    finished = run_on(spec, small_plan(), tmp_path / "runs", lockstep_spark)
    assert finished.verdict.verdict == "pass"
    name = topic_entry(finished.directory).fields["name"]
    assert re.fullmatch(f"{PREFIX}{finished.directory.name}-[0-9a-f]{{8}}-orders", name)
    assert [topic.name for topic in read_plan(finished.directory).topics] == [name]
    assert configuration(finished.directory) == Configuration(replication=3, min_isr=2, elr=True)
    wait_gone(lockstep_cluster, name)
    assert {topic for topic in topics_of(lockstep_cluster) - before if not topic.startswith("__")} == set()

    info = json.loads((finished.directory / "run.json").read_bytes())
    assert "spec" not in info
    assert info["external"]["brokers"].keys() == {"1", "2", "3"}
    assert [node["name"] for node in info["nodes"]] == ["broker-1", "broker-2", "broker-3"]
    where = f"--bootstrap-servers {spec.bootstrap_servers}"
    assert info["command"] == f"lockstep run small --seed 5 --backend external {where}"
    assert info["replay"] == f"lockstep replay {tmp_path / 'runs' / finished.directory.name} {where}"
    report = (finished.directory / "report.html").read_text()
    assert info["replay"] in report
    assert lockstep_cluster.cluster_id in report
    assert "The nodes of this cluster were not watched" in report

    info["external"]["overrides"]["unclean.leader.election.enable"] = "true"
    (finished.directory / "run.json").write_text(json.dumps(info))
    assert configuration(finished.directory).unclean, "what the cluster told is what it is judged by"


def configuration(run: Path) -> Configuration:
    """What the checker takes the run's only topic to be configured to."""
    with open_history(run) as history:
        (one,) = read_conditions(0, run, history).topics
    return one


@pytest.mark.spark
@pytest.mark.long
def test_a_run_that_does_not_pass_leaves_its_topics(
    lockstep_cluster: Cluster, spec: ExternalSpec, tmp_path: Path, lockstep_spark: SparkStarter
) -> None:
    """Its expectation is met by no cluster that keeps its promises, so the run is undecided."""
    plan = small_plan(lambda plan: plan.expect("no-lost-acks", "permitted"))
    finished = run_on(spec, plan, tmp_path / "runs", lockstep_spark)
    assert finished.verdict.verdict == "undecided"
    assert topic_entry(finished.directory).fields["name"] in topics_of(lockstep_cluster)


@contextmanager
def back_again(cluster: Cluster, broker_id: int) -> Iterator[None]:
    """Whatever happens to a broker meanwhile, it is there for the next test."""
    try:
        yield
    finally:
        cluster.broker(broker_id).start()
        cluster.wait_ready()


@pytest.mark.spark
def test_a_broker_that_stays_down_does_not_cost_the_verdict(
    lockstep_cluster: Cluster, spec: ExternalSpec, tmp_path: Path, lockstep_spark: SparkStarter
) -> None:
    progress = Meanwhile("clients at work", lockstep_cluster.broker(3).kill)
    with back_again(lockstep_cluster, 3):
        finished = run_on(spec, small_plan(), tmp_path / "runs", lockstep_spark, progress)
    assert finished.verdict.verdict == "pass"
    assert finished.verdict.counts["read"] > 0
    missing = topic_entry(finished.directory).fields["not_in_sync"]
    assert missing[0] == "broker 3 does not answer"
    assert [line for line in progress.said if line.startswith("not in sync: ")] == [
        f"not in sync: {what}" for what in missing
    ]


def test_partitions_of_a_broker_that_is_down_are_not_waited_for_for_ever(
    lockstep_cluster: Cluster, spec: ExternalSpec, tmp_path: Path
) -> None:
    with owning(tmp_path) as ledger, ExternalCluster(spec, reach(spec), ledger) as external:
        external.create_topic("external-unled", partitions=3, replication=1, config={})
        assert external.wait_led("external-unled", 3) == {0, 1, 2}
        assert external.note_not_in_sync("external-unled") == []
        gone = {number for number in range(3) if external.leader("external-unled", number).leader == 3}
        assert len(gone) == 1
        with back_again(lockstep_cluster, 3):
            lockstep_cluster.broker(3).kill()
            assert external.wait_led("external-unled", 3, timeout_s=1) == {0, 1, 2} - gone
            assert "broker 3 does not answer" in external.note_not_in_sync("external-unled")


@pytest.mark.spark
@pytest.mark.long
def test_what_cannot_be_read_to_its_end_is_undecided(
    lockstep_cluster: Cluster, spec: ExternalSpec, tmp_path: Path, lockstep_spark: SparkStarter
) -> None:
    """Three partitions with one replica each, so that one of them is on the broker that goes before it is read."""
    plan = PlanBuilder("small", 5)
    orders = plan.topic("orders", partitions=3, replication=1, min_isr=1)
    plan.write(orders, clients=1, rate_per_s=100)
    plan.hold(seconds=1)
    progress = Meanwhile("reading every partition", lockstep_cluster.broker(3).kill)
    with back_again(lockstep_cluster, 3):
        finished = run_on(spec, plan.build(), tmp_path / "runs", lockstep_spark, progress)
    assert finished.verdict.verdict == "undecided"
    (lost,) = (one for one in finished.verdict.guarantees if one.name == "no-lost-acks")
    assert lost.reason.startswith("3 of 3 partitions were not read to their ends")
    entry = topic_entry(finished.directory)
    assert [line for line in progress.said if line.startswith(f"{entry.fields['name']} could not be read to its end")]
    assert entry.fields["kept"] is True


@pytest.mark.parametrize(("at", "error"), [("clients at work", KeyboardInterrupt), ("judging", CheckerError)])
@pytest.mark.spark
def test_a_run_that_is_not_judged_leaves_its_topics(
    lockstep_cluster: Cluster,
    spec: ExternalSpec,
    tmp_path: Path,
    lockstep_spark: SparkStarter,
    at: str,
    error: type[BaseException],
) -> None:
    def end() -> None:
        raise error

    with pytest.raises(error) as ended:
        run_on(spec, small_plan(), tmp_path / "runs", lockstep_spark, Meanwhile(at, end))
    entry = topic_entry(tmp_path / "runs" / "latest")
    assert entry.fields["kept"] is True
    assert entry.fields["name"] in topics_of(lockstep_cluster)
    assert ended.value.__notes__ == [f"left on the cluster as evidence: {entry.fields['name']}"]


def test_what_a_client_config_says_in_vain_is_told(
    spec: ExternalSpec, tmp_path: Path, lockstep_spark: SparkStarter
) -> None:
    def end() -> None:
        raise KeyboardInterrupt

    config = tmp_path / "client.properties"
    config.write_text(f"bootstrap.servers={spec.bootstrap_servers}\nclient.id=payments\nacks=1\n")
    progress = Meanwhile("looking for", end)
    with pytest.raises(KeyboardInterrupt):
        run_on(ExternalSpec(client_config=str(config)), small_plan(), tmp_path / "runs", lockstep_spark, progress)
    assert progress.said[0] == f"{config}: acks, client.id ignored, as it does not concern access"


@pytest.mark.long
@pytest.mark.spark
def test_a_replay_is_the_same_plan_with_topics_of_its_own(
    lockstep_cluster: Cluster, spec: ExternalSpec, tmp_path: Path, lockstep: Lockstep, lockstep_spark: SparkStarter
) -> None:
    first = run_on(spec, small_plan(), tmp_path / "runs", lockstep_spark).directory
    finished = lockstep("replay", "--bootstrap-servers", lockstep_cluster.bootstrap(), timeout_s=600)
    assert finished.returncode == 0, finished.stderr
    second = (tmp_path / "runs" / "latest").resolve()
    assert second != first
    assert planned(first) == planned(second) == small_plan()


def planned(run: Path) -> Plan:
    return with_planned_topics(read_plan(run), run.name)


def test_a_replay_wants_to_know_where(spec: ExternalSpec, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from lockstep.rundir import RunDirectory

    directory = RunDirectory.create(
        tmp_path,
        scenario="small",
        seed=1,
        command="lockstep run small",
        spec=reach(spec),
        backend="external",
        java="17",
        librdkafka="2",
    )
    (directory.path / "plan.json").write_bytes(msgspec.json.encode(small_plan()))
    assert run_cli(["replay", str(directory.path)]) == USAGE
    said = capsys.readouterr().err
    assert f"as in lockstep replay {directory.path} --bootstrap-servers {spec.bootstrap_servers}" in said


@pytest.mark.lockstep(brokers=1)
def test_more_replicas_than_brokers(
    lockstep_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = topics_of(lockstep_cluster)
    where = ["--bootstrap-servers", lockstep_cluster.bootstrap()]
    assert run_cli(["run", "steady", "--backend", "external", *where]) == USAGE
    assert capsys.readouterr().err == "lockstep: topic orders wants 3 replicas and the cluster has 1 broker\n"
    assert list(tmp_path.iterdir()) == []
    assert topics_of(lockstep_cluster) == before


SOMEWHERE = ["--backend", "external", "--bootstrap-servers", "127.0.0.1:1"]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["run", "leader-kill", *SOMEWHERE], USAGE, "(kill: leader of orders-0), and those of an external cluster are"),
        (["run", "acks-one-loss", *SOMEWHERE], USAGE, "are not ours to touch: give it a cluster of its own"),
        (["run", "steady", *SOMEWHERE], ENVIRONMENT, "no Kafka answers at 127.0.0.1:1: "),
        (["run", "steady", "--backend", "external"], USAGE, "Give --bootstrap-servers host:port, or a --client-config"),
        (["run", "steady", *SOMEWHERE[:3], "nonsense"], USAGE, "'nonsense' is not a bootstrap server: write host:port"),
        (["run", "steady", *SOMEWHERE[2:]], USAGE, "lead to a cluster that is there already: add --backend external"),
        (["run", "steady", *SOMEWHERE, "--brokers", "3"], USAGE, "leave out what describes one to start, such as"),
        (["run", "steady", *SOMEWHERE, "--client-config", "none"], USAGE, "client properties cannot be read from"),
        (["up", "--backend", "external"], USAGE, "an external cluster is there already: nothing of it can be started"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_is_said_and_nothing_happens(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_cli(arguments) == code
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.startswith("lockstep: ")
    assert captured.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_properties_of_brokers_cannot_be_set(tmp_path: Path) -> None:
    plan = small_plan(lambda plan: plan.cluster({"replica.lag.time.max.ms": "30000"}))
    with pytest.raises(
        UsageError, match=r"small needs brokers with replica.lag.time.max.ms=30000, and those of an ext"
    ):
        run_on(ExternalSpec(bootstrap_servers="127.0.0.1:1"), plan, tmp_path / "runs", SparkStarter())
    assert not (tmp_path / "runs").exists()


@pytest.fixture
def no_kafka() -> Iterator[str]:
    """A server that greets in another protocol and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"SSH-2.0-elsewhere\r\n")

        thread = threading.Thread(target=greet, daemon=True)
        thread.start()
        host, port = server.getsockname()
        yield f"{host}:{port}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_what_is_no_kafka(no_kafka: str) -> None:
    with pytest.raises(EnvironmentError_, match=rf"^no Kafka answers at {no_kafka}: .*: check --bootstrap-servers"):
        reach(ExternalSpec(bootstrap_servers=no_kafka))


def test_names_there_and_back() -> None:
    plan = small_plan()
    renamed, other = with_own_topics(plan, "a-run"), with_own_topics(plan, "a-run")
    (name,) = (topic.name for topic in renamed.topics)
    assert re.fullmatch("lockstep-a-run-[0-9a-f]{8}-orders", name)
    assert {workload.topic for workload in renamed.workloads} == {name}
    assert {topic.name for topic in other.topics} != {name}, "another run of that name has topics of its own"
    assert with_planned_topics(renamed, "a-run") == with_planned_topics(other, "a-run") == plan
