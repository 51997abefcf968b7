"""Runs a plan's writers and readers, each in a thread of its own, until told to stop."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence

from confluent_kafka import OFFSET_BEGINNING

from lockstep.clients.access import Access
from lockstep.clients.consumer import RecordedConsumer
from lockstep.clients.producer import DELIVERY_TIMEOUT_MS, ProducerSettings, RecordedProducer
from lockstep.errors import ClusterError
from lockstep.history.recorder import Recorder
from lockstep.history.schema import Role
from lockstep.plan.plan import Read, TopicPlan, Write

TICK_S = 0.05
OUTSTANDING_LIMIT = 5_000
POLL_S = 0.2
ABANDON_S = 5.0
READERS_END_S = 120.0
WRITERS_END_S = DELIVERY_TIMEOUT_MS / 1000 + 60.0
"""Longer than the clients themselves wait for an answer."""


class Load:
    """All clients of one run. The error that ended one of them is raised again by the next call."""

    def __init__(
        self,
        *,
        workloads: Sequence[Write | Read],
        topics: dict[str, tuple[TopicPlan, str]],
        access: Access,
        recorder: Recorder,
        seed: int,
    ) -> None:
        self._recorder = recorder
        self._access = access
        self._topics = topics
        self._writing = threading.Event()
        self._reading = threading.Event()
        self._abandoned = threading.Event()
        self._failures: list[BaseException] = []
        self._writers: list[threading.Thread] = []
        self._readers: list[threading.Thread] = []
        for number, workload in enumerate(workloads):
            for client in range(workload.clients):
                # Each client draws from its own stream: how one is scheduled never changes what another does.
                own_seed = f"{seed}/{number}/{client}"
                if isinstance(workload, Write):
                    self._writers.append(self._thread(self._write, workload, random.Random(own_seed)))  # noqa: S311
                else:
                    self._readers.append(self._thread(self._read, workload))

    def start(self) -> None:
        self._writing.set()
        self._reading.set()
        for thread in self._writers + self._readers:
            thread.start()

    def check(self) -> None:
        """Raise what a client thread died of, if one did."""
        if self._failures:
            raise self._failures[0]

    def stop_writing(self) -> None:
        """No new sends; returns when every send so far has its answer (or its delivery time-out)."""
        self._writing.clear()
        _join(self._writers, WRITERS_END_S)
        self.check()

    def stop_reading(self) -> None:
        self._reading.clear()
        _join(self._readers, READERS_END_S)
        self.check()

    def abandon(self) -> None:
        """End all clients without waiting for their answers: the run is over anyway."""
        self._abandoned.set()
        self._writing.clear()
        self._reading.clear()
        for thread in self._writers + self._readers:
            if thread.ident is not None:
                thread.join(ABANDON_S)

    def _thread(self, target: Callable[..., None], *arguments: object) -> threading.Thread:
        def guarded() -> None:
            try:
                target(*arguments)
            except BaseException as error:
                self._failures.append(error)

        return threading.Thread(target=guarded, name=target.__name__.strip("_"), daemon=True)

    def _write(self, workload: Write, chance: random.Random) -> None:
        topic, topic_id = self._topics[workload.topic]
        settings = ProducerSettings(acks=workload.acks, idempotent=workload.idempotent, in_flight=workload.in_flight)
        while self._writing.is_set():
            producer = RecordedProducer(self._recorder, self._access, topic.name, topic_id, settings)
            self._drive(producer, topic.partitions, workload.rate_per_s, chance)
            if self._abandoned.is_set():
                producer.abandon()
            else:
                producer.close()

    def _drive(self, producer: RecordedProducer, partitions: int, rate_per_s: int, chance: random.Random) -> None:
        """Send at the wanted rate until told to stop, or until this producer can never send again (a fatal error)."""
        sent = 0
        start = time.monotonic()
        while self._writing.is_set() and producer.fatal is None:
            due = int((time.monotonic() - start) * rate_per_s) - sent
            room = OUTSTANDING_LIMIT - producer.outstanding
            count = max(0, min(due, room))
            if count:
                producer.send([chance.randrange(partitions) for _ in range(count)])
                sent += count
            producer.poll(TICK_S)

    def _read(self, workload: Read) -> None:
        topic, topic_id = self._topics[workload.topic]
        consumer = RecordedConsumer(self._recorder, self._access, topic.name, topic_id, Role.READER)
        try:
            consumer.assign(dict.fromkeys(range(topic.partitions), OFFSET_BEGINNING))
            while self._reading.is_set():
                consumer.poll(POLL_S)
        finally:
            consumer.close()


def _join(threads: Sequence[threading.Thread], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            raise ClusterError(f"a {thread.name} client did not end within {timeout_s:g} s")
