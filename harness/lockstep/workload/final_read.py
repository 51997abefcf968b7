"""The final phase: read every partition to its end, so that a late record and a lost one can be told apart."""

from __future__ import annotations

import time
from collections.abc import Mapping

import msgspec

from lockstep.clients.access import Access
from lockstep.clients.consumer import RecordedConsumer
from lockstep.history.lines import ObservationLine
from lockstep.history.recorder import Recorder
from lockstep.history.schema import FINAL_READ, Role
from lockstep.plan.plan import TopicPlan
from lockstep.wait import wait_until

POLL_S = 0.5
TIMEOUT_S = 300.0
VISIBLE_S = 60.0


def read_to_end(
    recorder: Recorder, access: Access, topic: TopicPlan, topic_id: str, log_ends: Mapping[int, int]
) -> None:
    """One reader from the start of every partition to the end of its leader's log; each end is recorded as proven."""
    consumer = RecordedConsumer(recorder, access, topic.name, topic_id, Role.FINAL)
    try:
        bounds = {partition: _bounds(consumer, partition, end) for partition, end in log_ends.items()}
        consumer.assign({partition: low for partition, (low, _) in bounds.items()})

        def read() -> bool:
            consumer.poll(POLL_S)
            return all(_position(consumer, partition, low) >= high for partition, (low, high) in bounds.items())

        wait_until(read, timeout_s=TIMEOUT_S, what=f"{topic.name} to be read to its end", interval_s=0)
        now_ns = time.monotonic_ns()
        recorder.write(
            "observations",
            [
                ObservationLine(
                    asked_ns=now_ns,
                    answered_ns=now_ns,
                    source=FINAL_READ,
                    topic=topic.name,
                    topic_id=topic_id,
                    partition=partition,
                    log_start=low,
                    log_end=high,
                    extra=msgspec.json.encode({"position": _position(consumer, partition, low)}).decode(),
                )
                for partition, (low, high) in bounds.items()
            ],
        )
    finally:
        consumer.close()


def _bounds(consumer: RecordedConsumer, partition: int, log_end: int) -> tuple[int, int]:
    """What can be read, once that is the whole log: a high watermark that lags would hide acknowledged records."""

    def bounds() -> tuple[int, int] | None:
        low, high = consumer.watermarks(partition)
        return (low, high) if high >= log_end else None

    whole = wait_until(
        bounds, timeout_s=VISIBLE_S, what=f"partition {partition} to be readable to the end of its log at {log_end}"
    )
    assert whole is not None
    return whole


def _position(consumer: RecordedConsumer, partition: int, low: int) -> int:
    position = consumer.position(partition)
    return low if position < 0 else position  # nothing read yet: still where it was assigned
