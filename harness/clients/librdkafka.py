"""What all librdkafka clients share: how they are configured and how their errors are told apart."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError

from harness.history.schema import Outcome

CLIENT = "librdkafka"

_log = logging.getLogger("lockstep.librdkafka")
_log.propagate = False
_log.addHandler(logging.NullHandler())

# The record never left the client: these, and only these, are certain not to have happened. Any broker error may follow
# an earlier attempt that was appended (a retry of an appended batch can end in NOT_ENOUGH_REPLICAS), so it is unknown.
CERTAINLY_NOT_SENT = frozenset({KafkaError._PURGE_QUEUE, KafkaError._QUEUE_FULL, KafkaError.MSG_SIZE_TOO_LARGE})


@contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """What the clients say goes to a file of the run, and never to the user's terminal."""
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    _log.addHandler(handler)
    try:
        yield
    finally:
        _log.removeHandler(handler)
        handler.close()


def version() -> str:
    return str(confluent_kafka.libversion()[0])


def common(bootstrap: str, client_id: str) -> dict[str, Any]:
    """Fast reconnects: a client that sleeps through the fault tests nothing."""
    return {
        "bootstrap.servers": bootstrap,
        "client.id": client_id,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 500,
        "topic.metadata.refresh.interval.ms": 5_000,
        "topic.metadata.refresh.fast.interval.ms": 100,
        "socket.timeout.ms": 10_000,
        "log_level": 4,
        "logger": _log,
    }


def outcome_of(error: KafkaError | None) -> Outcome:
    if error is None:
        return Outcome.OK
    return Outcome.FAIL if error.code() in CERTAINLY_NOT_SENT else Outcome.UNKNOWN
