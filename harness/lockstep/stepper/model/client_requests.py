"""What a broker may answer to a client's request, by the reference model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from lockstep.stepper.model.description import records_in_words
from lockstep.stepper.model.state import Answered, Asked, Request, Waits
from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.fetch import Fetch, Fetched, fetch
from lockstep_model.partition.log import Epoch, Offset
from lockstep_model.partition.offsets import (
    EndOfEpoch,
    Listed,
    ListOffsets,
    OffsetForLeaderEpoch,
    list_offsets,
    offset_for_leader_epoch,
)
from lockstep_model.partition.produce import Produce, Produced, Unanswered, Waiting, produce
from lockstep_model.partition.producer_state import ProducerId
from lockstep_model.partition.replica import Replica
from lockstep_model.transactions.coordinator import Answer

Reading: TypeAlias = Callable[[Request], Request]
"""How a model reads requests: a wrong one may take one for another."""


def as_asked(request: Request) -> Request:
    return request


Offsets: TypeAlias = tuple[Error, Offset, Offset, Offset]
"""An error, or high watermark, last stable offset and log start."""
Handled: TypeAlias = tuple[Replica, Asked | Waits | Answered]


def handle(parameters: Parameters, replica: Replica, asked: Asked) -> Iterator[Handled]:
    """What becomes of a replica and of a request to it; nothing where the known answer is another one."""
    if isinstance(asked.request, Produce):
        yield from _produce(parameters, replica, asked)
        return
    reply = answer(parameters, replica, asked.request, asked.reply)
    if isinstance(reply, Told) and isinstance(asked.reply, Told):
        if asked.begun:
            reply = reply.with_offsets_of(asked.reply)
        elif _looked_at(parameters, replica, asked.request) == asked.reply.offsets:
            yield replica, asked._replace(begun=True)
    if asked.reply in (None, reply):
        yield replica, Answered(reply)


def _looked_at(parameters: Parameters, replica: Replica, request: Fetch) -> Offsets:
    """The offsets that a fetch is told, wherever it begins."""
    return _told(fetch(parameters, replica, request._replace(offset=replica.log.start)), None).offsets


def _produce(parameters: Parameters, replica: Replica, asked: Asked) -> Iterator[tuple[Replica, Waits | Answered]]:
    after, reply = produce(parameters, replica, asked.request)
    if isinstance(reply, Waiting):
        yield after, Waits(asked.broker, replica.broker_epoch, asked.request, reply, asked.reply)
    elif asked.reply in (None, reply):
        yield after, Answered(reply)


def answer(parameters: Parameters, replica: Replica, request: Request, seen: object = None) -> object:
    """What a replica answers at once, to requests that leave it as it is; where it may choose, what was seen of it."""
    match request:
        case Fetch():
            return _told(fetch(parameters, replica, request), seen)
        case ListOffsets():
            return list_offsets(parameters, replica, request)
        case OffsetForLeaderEpoch():
            return offset_for_leader_epoch(replica, request)
        case _:
            raise TypeError(f"the reference model has no answer to {request}")


class Told(NamedTuple):
    """What is compared of the answer to a fetch: offsets, and records with their epochs.

    A broker looks at its high watermark, last stable offset and log start first, and reads after that: meanwhile more
    may have become readable, or been truncated (Partition.readRecords).
    """

    error: Error
    records: tuple[tuple[Epoch, int], ...] = ()
    high_watermark: Offset = -1
    last_stable_offset: Offset = -1
    log_start: Offset = -1
    aborted: frozenset[tuple[ProducerId, Offset]] = frozenset()
    """The transactions whose records do not count, by who began each where."""

    @property
    def offsets(self) -> Offsets:
        """What a broker looks at first."""
        return self.error, self.high_watermark, self.last_stable_offset, self.log_start

    def with_offsets_of(self, earlier: Told) -> Told:
        """What is read after the offsets were looked at; nothing is where there is an error by then."""
        if self.error is not Error.NONE:
            return self
        return Told(self.error, self.records, *earlier.offsets[1:], self.aborted)


def _told(fetched: Fetched, seen: object) -> Told:
    records = tuple((record.epoch, record.value) for record in fetched.records)
    listed = frozenset((one.producer_id, one.first_offset) for one in fetched.aborted)
    if isinstance(seen, Told) and fetched.lists(seen.aborted):
        listed = seen.aborted
    offsets = fetched.high_watermark, fetched.last_stable_offset, fetched.log_start
    return Told(fetched.error, records, *offsets, listed)


def in_words(reply: Any) -> str:
    """An answer of the model's kind, for people."""
    match reply:
        case Unanswered():
            return "refused, and the connection closed" if reply.closed else "taken"
        case Produced(error=Error.NONE):
            return f"written at {reply.offset}"
        case Told(error=Error.NONE):
            return (
                f"[{records_in_words(reply.records)}], high watermark {reply.high_watermark}, "
                f"last stable offset {reply.last_stable_offset}, log start {reply.log_start}"
                + (f", aborted {sorted(reply.aborted)}" if reply.aborted else "")
            )
        case Listed(error=Error.NONE):
            return f"offset {reply.offset} of epoch {reply.leader_epoch}"
        case Answer(error=Error.NONE):
            return "done" if reply.producer is None else f"producer {reply.producer.id} epoch {reply.producer.epoch}"
        case EndOfEpoch(error=Error.NONE):
            return f"epoch {reply.epoch} ends at {reply.end}"
        case _:
            return str(reply.error.name)
