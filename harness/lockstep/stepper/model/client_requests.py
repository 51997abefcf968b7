"""Client requests: the responses that the reference model permits a broker to give.

Produce changes the replica; Fetch, ListOffsets and OffsetForLeaderEpoch only read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from lockstep.stepper.model.description import records_in_words
from lockstep.stepper.model.state import DelayedResponse, PendingRequest, Request, Response
from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.fetch import ConsumerFetchResponse, Fetch, fetch
from lockstep_model.partition.log import Epoch, Offset
from lockstep_model.partition.offsets import (
    EndOfEpoch,
    Listed,
    ListOffsets,
    OffsetForLeaderEpoch,
    list_offsets,
    offset_for_leader_epoch,
)
from lockstep_model.partition.produce import DelayedProduce, Produce, Produced, Unanswered, produce
from lockstep_model.partition.producer_state import ProducerId
from lockstep_model.partition.replica import Replica
from lockstep_model.transactions.coordinator import Answer

Reading: TypeAlias = Callable[[Request], Request]
"""How the model interprets a request; a deliberately wrong model may take one request for another."""


def as_asked(request: Request) -> Request:
    return request


class FetchOffsets(NamedTuple):
    """The fields of a fetch response that do not depend on its records: a broker reads them first."""

    error: Error
    high_watermark: Offset
    last_stable_offset: Offset
    log_start: Offset


Handled: TypeAlias = tuple[Replica, PendingRequest | DelayedResponse | Response]


def handle(parameters: Parameters, replica: Replica, asked: PendingRequest) -> Iterator[Handled]:
    """The replica and the request after the broker has handled it; nothing if the known response contradicts that.

    A fetch may take two steps: it reads its offsets first and its records later (`FetchResponse`).
    """
    if isinstance(asked.request, Produce):
        yield from _produce(parameters, replica, asked)
        return
    reply = answer(parameters, replica, asked.request, asked.reply)
    if isinstance(reply, FetchResponse) and isinstance(asked.reply, FetchResponse):
        if asked.begun:
            reply = reply.with_offsets_of(asked.reply)
        elif _looked_at(parameters, replica, asked.request) == asked.reply.offsets:
            yield replica, asked._replace(begun=True)
    if asked.reply in (None, reply):
        yield replica, Response(reply)


def _looked_at(parameters: Parameters, replica: Replica, request: Fetch) -> FetchOffsets:
    """Error, high watermark, last stable offset and log start of a fetch, which do not depend on its fetch offset."""
    return _told(fetch(parameters, replica, request._replace(offset=replica.log.start)), None).offsets


def _produce(
    parameters: Parameters, replica: Replica, asked: PendingRequest
) -> Iterator[tuple[Replica, DelayedResponse | Response]]:
    """Produce: the immediate response, or the delayed one for acks=all."""
    after, reply = produce(parameters, replica, asked.request)
    if isinstance(reply, DelayedProduce):
        yield after, DelayedResponse(asked.broker, replica.broker_epoch, asked.request, reply, asked.reply)
    elif asked.reply in (None, reply):
        yield after, Response(reply)


def answer(parameters: Parameters, replica: Replica, request: Request, seen: object = None) -> object:
    """Response to a request that only reads the replica; where Kafka may return one of several, the observed one."""
    match request:
        case Fetch():
            return _told(fetch(parameters, replica, request), seen)
        case ListOffsets():
            return list_offsets(parameters, replica, request)
        case OffsetForLeaderEpoch():
            return offset_for_leader_epoch(replica, request)
        case _:
            raise TypeError(f"the reference model has no answer to {request}")


class FetchResponse(NamedTuple):
    """Fields of a fetch response that are compared: offsets, records with their leader epochs, aborted transactions.

    A broker reads high watermark, last stable offset and log start offset first, and the records after that
    (Partition.readRecords). Between the two, more records may become readable, or some may be truncated.
    """

    error: Error
    records: tuple[tuple[Epoch, int], ...] = ()
    high_watermark: Offset = -1
    last_stable_offset: Offset = -1
    log_start: Offset = -1
    aborted: frozenset[tuple[ProducerId, Offset]] = frozenset()
    """The aborted transactions, by producer id and first offset."""

    @property
    def offsets(self) -> FetchOffsets:
        """The fields that a broker reads before the records."""
        return FetchOffsets(self.error, self.high_watermark, self.last_stable_offset, self.log_start)

    def with_offsets_of(self, earlier: FetchResponse) -> FetchResponse:
        """These records with the offsets that were read earlier; an error that has come up since replaces all of it."""
        if self.error is not Error.NONE:
            return self
        return FetchResponse(self.error, self.records, *earlier.offsets[1:], self.aborted)


def _told(fetched: ConsumerFetchResponse, seen: object) -> FetchResponse:
    """The response as it is compared; of the permitted lists of aborted transactions, the observed one."""
    records = tuple((record.epoch, record.value) for record in fetched.records)
    listed = frozenset((one.producer_id, one.first_offset) for one in fetched.aborted)
    if isinstance(seen, FetchResponse) and fetched.lists(seen.aborted):
        listed = seen.aborted
    offsets = fetched.high_watermark, fetched.last_stable_offset, fetched.log_start
    return FetchResponse(fetched.error, records, *offsets, listed)


def in_words(reply: Any) -> str:
    """A response of the model in words, for reports."""
    match reply:
        case Unanswered():
            return "refused, and the connection closed" if reply.closed else "taken"
        case Produced(error=Error.NONE):
            return f"written at {reply.offset}"
        case FetchResponse(error=Error.NONE):
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
