"""Watches a cluster from outside: each broker's Metadata response on leaders and ISRs, whenever it changes."""

from __future__ import annotations

import threading
import time

from lockstep.clients.wire.connection import Connection
from lockstep.clients.wire.metadata import PartitionView, metadata
from lockstep.cluster.brokers import Brokers
from lockstep.history.lines import ObservationLine
from lockstep.history.recorder import Recorder

INTERVAL_S = 0.1


class MetadataObserver:
    """One thread per broker, asking it directly (past all links) and recording every change of its view."""

    def __init__(self, brokers: Brokers, recorder: Recorder, topics: tuple[str, ...]) -> None:
        self._brokers = brokers
        self._recorder = recorder
        self._topics = topics
        self._done = threading.Event()
        self._failures: list[Exception] = []
        self._threads = [
            threading.Thread(target=self._watch, args=(broker,), name=f"observer-{broker}", daemon=True)
            for broker in brokers.broker_ids
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End, and raise the error that ended a thread: a run must not pass because it was not observed."""
        self._done.set()
        for thread in self._threads:
            thread.join()
        if self._failures:
            raise self._failures[0]

    def _watch(self, broker: int) -> None:
        while not self._done.is_set():
            try:
                with Connection(self._brokers.direct(broker), self._brokers.access()) as connection:
                    self._follow(broker, connection)
            except OSError:  # it is down or busy: ask again
                self._done.wait(INTERVAL_S)
            except Exception as error:
                self._failures.append(error)
                return

    def _follow(self, broker: int, connection: Connection) -> None:
        incarnation = self._brokers.incarnation(broker)
        known: dict[tuple[str, int], PartitionView] = {}
        while not self._done.wait(INTERVAL_S):
            asked_ns = time.monotonic_ns()
            view = metadata(connection, self._topics)
            answered_ns = time.monotonic_ns()
            changed = [p for p in view.partitions if known.get((p.topic, p.partition)) != p]
            known.update({(p.topic, p.partition): p for p in changed})
            lines = [
                ObservationLine(
                    asked_ns=asked_ns,
                    answered_ns=answered_ns,
                    source="metadata",
                    node=broker,
                    incarnation=None if incarnation is None else str(incarnation),
                    topic=p.topic,
                    topic_id=p.topic_id,
                    partition=p.partition,
                    leader=p.leader,
                    leader_epoch=p.leader_epoch,
                    isr=list(p.isr),
                    controller=view.controller,
                )
                for p in changed
            ]
            self._recorder.write("observations", lines)
