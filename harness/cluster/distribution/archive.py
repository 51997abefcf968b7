"""One training run per (Kafka version, Java): what it teaches makes every later node start quickly.

A combined node is formatted, started, given a topic, a producer and a consumer group, and stopped. The JVM writes down
the classes it loaded (a class-data archive) and the storage tool what it formatted (see `storage`).
"""

from __future__ import annotations

import hashlib
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.cache import make_once
from harness.cluster.distribution import leash
from harness.cluster.distribution.command import java_command
from harness.cluster.distribution.storage import BOOTSTRAP, META, random_id
from harness.errors import ClusterError, EnvironmentError_
from harness.java import Java
from harness.progress import Progress
from harness.wait import wait_until

ARCHIVE = "classes.jsa"
HOST = "127.0.0.1"
READY_TIMEOUT_S = 90
STOP_TIMEOUT_S = 90
FORMAT_TIMEOUT_S = 60
TOPIC = "training"
RECORDS = 100


def trained(directory: Path, version: str, java: Java, classpath: str, progress: Progress) -> Path:
    """The directory with the archive and the learnt storage files; the training happens once."""

    def train(target: Path) -> None:
        with progress.action(f"making the class-data archive of Kafka {version} for Java {java.version}"):
            _train(target, java, classpath)

    return make_once(trained_path(directory, java, classpath), train)


def trained_path(directory: Path, java: Java, classpath: str) -> Path:
    """An archive is bound to the exact Java build and class path, so its name is too."""
    bound_to = hashlib.sha256("\n".join([java.build, java.vendor, str(java.home), classpath]).encode()).hexdigest()
    return directory / f"java-{java.version}-{bound_to[:12]}"


def usable(archive: Path, java: Java, classpath: str) -> bool:
    """Whether this Java accepts the archive for this class path (a node would silently start without it)."""
    answer = subprocess.run(
        [java.executable, "-Xshare:on", f"-XX:SharedArchiveFile={archive}", "-cp", classpath, "-version"],
        capture_output=True,
        timeout=60,
    )
    return answer.returncode == 0


def _train(target: Path, java: Java, classpath: str) -> None:
    work = Path(tempfile.mkdtemp(prefix="lockstep-training-"))
    try:
        _learn(target, work, java, classpath)
    except (ClusterError, OSError, subprocess.SubprocessError) as error:
        raise EnvironmentError_(
            f"the training run that makes the class-data archive failed ({error}): see the logs in {work}, "
            "then run lockstep doctor --fix"
        ) from error
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    shutil.rmtree(work)


def _learn(target: Path, work: Path, java: Java, classpath: str) -> None:
    target.mkdir()
    storage = work / "storage"
    port, controller_port = _free_ports()
    properties = work / "server.properties"
    properties.write_text(_configuration(storage, port, controller_port))

    tool = java_command(
        java, classpath, "format", "-t", random_id(), "-c", str(properties),
        main="kafka.tools.StorageTool", log_directory=work,
    )  # fmt: skip
    with (work / "format.log").open("wb") as log:
        subprocess.run(tool, stdout=log, stderr=log, stdin=subprocess.DEVNULL, timeout=FORMAT_TIMEOUT_S, check=True)
    for name in (META, BOOTSTRAP):
        shutil.copyfile(storage / name, target / name)

    archive = target / ARCHIVE
    node = java_command(
        java, classpath, str(properties),
        main="kafka.Kafka", log_directory=work, jvm=[f"-XX:ArchiveClassesAtExit={archive}"],
    )  # fmt: skip
    with _leashed(node, work / "output.log") as process:
        _exercise(f"{HOST}:{port}", process)
    if not archive.exists():
        raise ClusterError("the JVM wrote no archive when it was stopped")


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


def _free_ports() -> tuple[int, int]:
    with socket.socket() as first, socket.socket() as second:
        first.bind((HOST, 0))
        second.bind((HOST, 0))
        return first.getsockname()[1], second.getsockname()[1]


def _configuration(storage: Path, port: int, controller_port: int) -> str:
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CLIENT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"CLIENT://{HOST}:{port}",
        "inter.broker.listener.name": "CLIENT",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(storage),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())
