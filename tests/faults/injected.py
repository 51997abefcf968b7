"""Injecting one fault into a cluster that tests share, as a run does it, and reading both proofs from the ledger."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from lockstep.cluster.cluster import Cluster
from lockstep.faults.fault import Proof
from lockstep.faults.injector import Injector
from lockstep.history.recorder import Recorder
from lockstep.plan.plan import Inject
from lockstep.plan.targets import Target
from lockstep.recovery.ledger import LEDGER, Entry, read_ledger


class Injected:
    """What was seen of one fault: `bit` once it is injected, `healed` after the block."""

    bit: Proof
    healed: Proof


@contextmanager
def injected(cluster: Cluster, directory: Path, fault: str, target: Target, **settings: Any) -> Iterator[Injected]:
    """Inject a fault that must bite; heal it at the end of the block, where both must be in the ledger."""
    seen = Injected()
    with Recorder(directory, "a-run") as recorder:
        injector = Injector(cluster, recorder)
        try:
            injector.inject(Inject(step=1, fault=fault, target=target, settings=settings))
            seen.bit = (last_fault(cluster).phase("proof") or {})["detail"]
            assert seen.bit.get("bit") is not False, seen.bit
            yield seen
        finally:
            injector.heal_all()
        seen.healed = (last_fault(cluster).phase("healed") or {})["detail"]


def last_fault(cluster: Cluster) -> Entry:
    return [entry for entry in read_ledger(cluster.directory / LEDGER) if entry.kind == "fault"][-1]


@contextmanager
def writing(cluster: Cluster, topic: str) -> Iterator[None]:
    """Somebody writes to the first partition with acks=1 until the block ends."""
    done = threading.Event()
    producer = Producer({"bootstrap.servers": cluster.bootstrap(), "acks": 1})

    def write() -> None:
        while not done.wait(0.02):
            producer.produce(topic, b"x", partition=0)
            producer.poll(0)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        producer.flush(30)
