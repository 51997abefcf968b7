"""What all librdkafka clients share: how they are configured and how their errors are told apart."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError

from lockstep.clients.access import Access
from lockstep.clients.wire.connection import require_admission
from lockstep.history.schema import Outcome

CLIENT = "librdkafka"

_log = logging.getLogger("lockstep.librdkafka")
_log.propagate = False
_log.addHandler(logging.NullHandler())


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


class Admission:
    """Notices that brokers refuse a client's credentials: librdkafka takes that for transient, and retries for ever.

    librdkafka gives the same error when a broker goes away during authentication. To tell the two apart, `check`
    authenticates on a connection of its own.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._in_doubt = False

    def note(self, error: KafkaError) -> None:
        """The client's `error_cb`; called by whatever polls the client."""
        self._in_doubt |= error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL)

    def check(self) -> None:
        """Raise `AccessRefused` if that is what has happened since the last call."""
        if self._in_doubt:
            self._in_doubt = False
            require_admission(self._access)


def common(access: Access, admission: Admission, client_id: str) -> dict[str, Any]:
    """Fast reconnects: a client that sleeps through the fault tests nothing."""
    return {
        **access.librdkafka(),
        "error_cb": admission.note,
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
    """The outcome by a delivery report: without an error the record was appended; with one it may have been.

    Any error may follow an earlier attempt that was appended: a retry can end in NOT_ENOUGH_REPLICAS, and what a fatal
    error purges from the client's queue may have been sent before. Only a send that the client refused outright is
    certain not to have happened, and that is no delivery report.
    """
    return Outcome.OK if error is None else Outcome.UNKNOWN
