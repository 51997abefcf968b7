"""One training run per (Kafka version, Java) and kind of cluster: what it teaches makes every later node start quickly.

A cluster of one broker is started, given a topic, a producer and a consumer group, and stopped. Each of its JVMs writes
down the classes it loaded, as a class-data archive.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from lockstep.cluster.distribution import leash
from lockstep.cluster.distribution.installation import Distribution
from lockstep.cluster.distribution.program import Program
from lockstep.cluster.distribution.storage import random_id
from lockstep.errors import ClusterError, EnvironmentError_
from lockstep.host.cache import make_once
from lockstep.progress import Progress
from lockstep.wait import wait_until

HOST = "127.0.0.1"
READY_TIMEOUT_S = 90
STOP_TIMEOUT_S = 90
TOPIC = "training"
RECORDS = 100

SMALL = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}


def train(kafka: Distribution, programs: Iterable[Program], progress: Progress) -> None:
    """Make the archives of these programs that are not there yet."""
    for training in sorted({program.training for program in programs}):
        _train_once(kafka, training, progress)


def _train_once(kafka: Distribution, training: str, progress: Progress) -> None:
    def make(target: Path) -> None:
        what = f"making the class-data archives of Kafka {kafka.version} ({training}) for Java {kafka.java.version}"
        with progress.action(what):
            _train(kafka, _RUNS[training], target)

    make_once(kafka.trained / training, make)


def _train(kafka: Distribution, run: Callable[[Distribution, Path, Path], None], target: Path) -> None:
    target.mkdir()
    work = Path(tempfile.mkdtemp(prefix="lockstep-training-"))
    try:
        run(kafka, target, work)
    except (ClusterError, OSError, subprocess.SubprocessError) as error:
        raise EnvironmentError_(
            f"the training run that makes the class-data archives failed ({error}): see the logs in {work}, "
            "then run lockstep doctor --fix"
        ) from error
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    shutil.rmtree(work)


def _kraft(kafka: Distribution, target: Path, work: Path) -> None:
    """One combined node."""
    port, controller_port = _free_ports(2)
    kafka.learn().write(work / "data", cluster_id=random_id(), node_id=1)
    settings = SMALL | {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CLIENT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"CLIENT://{HOST}:{port}",
        "inter.broker.listener.name": "CLIENT",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(work / "data"),
    }
    with _learning(kafka, Program.KRAFT, settings, target, work) as node:
        _exercise(f"{HOST}:{port}", node)


def _zk(kafka: Distribution, target: Path, work: Path) -> None:
    """A ZooKeeper ensemble of one, which loads what one of three does, and a broker, which is stopped first."""
    port, zookeeper_port, quorum_port, election_port = _free_ports(4)
    data = work / "zookeeper-data"
    data.mkdir()
    (data / "myid").write_text("1\n")
    zookeeper_settings = {
        "dataDir": str(data),
        "clientPortAddress": HOST,
        "clientPort": str(zookeeper_port),
        "tickTime": "500",
        "initLimit": "10",
        "syncLimit": "5",
        "standaloneEnabled": "false",
        "server.1": f"{HOST}:{quorum_port}:{election_port}",
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "*",
    }
    broker_settings = SMALL | {
        "broker.id": "1",
        "zookeeper.connect": f"{HOST}:{zookeeper_port}",
        "listeners": f"CLIENT://{HOST}:{port}",
        "inter.broker.listener.name": "CLIENT",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT",
        "log.dirs": str(work / "data"),
    }
    with (
        _learning(kafka, Program.ZOOKEEPER, zookeeper_settings, target, work),
        _learning(kafka, Program.ZK_BROKER, broker_settings, target, work) as broker,
    ):
        _exercise(f"{HOST}:{port}", broker)


_RUNS: Mapping[str, Callable[[Distribution, Path, Path], None]] = {"kraft": _kraft, "zk": _zk}


@contextmanager
def _learning(
    kafka: Distribution, program: Program, settings: Mapping[str, str], target: Path, work: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A node that writes its archive into `target` when it is stopped at the end of the block."""
    archive = target / kafka.archive(program).name
    properties = work / f"{program.label}.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    logs = work / f"{program.label}-logs"
    logs.mkdir()
    command = kafka.command(program, str(properties), log_directory=logs, jvm=[f"-XX:ArchiveClassesAtExit={archive}"])
    with _leashed(command, work / f"{program.label}.log") as process:
        yield process
    if not archive.exists():
        raise ClusterError(f"the {program.label} JVM wrote no archive when it was stopped")


@contextmanager
def _leashed(argv: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A node that is stopped gently at the end of the block, and killed if anything goes wrong."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-I", str(leash.__file__), *argv],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C reaches us, and we end it
        )
    assert process.stdin is not None
    try:
        yield process
        process.stdin.write(b"stop\n")
        process.stdin.flush()
        process.wait(STOP_TIMEOUT_S)
    finally:
        process.stdin.close()
        process.wait()


def _exercise(bootstrap: str, process: subprocess.Popen[bytes]) -> None:
    """Have the node load what clients make it load."""
    from confluent_kafka import Consumer, KafkaException, Producer
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    client: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap, "log_level": 0}
    admin = AdminClient(client)

    def ready() -> bool:
        if process.poll() is not None:
            raise ClusterError(f"the node exited with code {process.returncode}")
        return bool(admin.list_topics(timeout=1).brokers)

    wait_until(ready, timeout_s=READY_TIMEOUT_S, what="the node to answer", retry_on=(KafkaException,))
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(timeout=30)

    producer = Producer(client | {"enable.idempotence": True})
    for number in range(RECORDS):
        producer.produce(TOPIC, value=str(number))
    if producer.flush(30):
        raise ClusterError("the node did not acknowledge the training records")

    consumer = Consumer(client | {"group.id": TOPIC, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    try:
        wait_until(lambda: consumer.poll(1), timeout_s=60, what="a training record to be read")
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        raise ClusterError(f"the training group could not commit: {error}") from error
    finally:
        consumer.close()


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in sockets]
