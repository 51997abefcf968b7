"""A partition leader in the transaction machine: its log, producer state and pending verifications.

Followers hold the log up to the high watermark at least; so does the next leader.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition import last_stable_offset, producer_state
from lockstep_model.partition.log import Log, Offset, Record
from lockstep_model.partition.producer_state import (
    Acceptance,
    Batch,
    Duplicate,
    Marker,
    ProducerEntry,
    ProducerId,
    Verification,
)

Source: TypeAlias = int
"""Client and transaction that wrote a record, kept as the record's value. Kafka does not know it; the invariants use it
to tell transactions apart."""
NO_SOURCE: Source = -1
"""Source of markers."""
_MOST_TRANSACTIONS = 100


def source_of(client: str, transaction: int) -> Source:
    """The source of records in a client's transaction; transactions are numbered from 0."""
    return ord(client) * _MOST_TRANSACTIONS + transaction


def client_of(source: Source) -> str:
    """Name of the client that wrote a record."""
    return chr(source // _MOST_TRANSACTIONS)


class VerifiedBatch(NamedTuple):
    """A batch that is verified, or needs no verification, and is about to be appended."""

    batch: Batch
    source: Source
    guard: Offset | None
    """Its verification guard (VerificationGuard); None if it needs no verification."""


class Leader(NamedTuple):
    """The current leader of one partition."""

    log: Log = Log()
    high_watermark: Offset = 0
    epoch: int = 0
    verifications: tuple[tuple[ProducerId, Verification], ...] = ()
    """Verification state entry of each producer (VerificationStateEntry)."""
    waiting: frozenset[VerifiedBatch] = frozenset()
    """Batches between verification and append."""
    unacknowledged: tuple[Marker, Offset] | None = None
    """The last marker and its offset, until the coordinator has the WriteTxnMarkers response."""
    elections: int = 0
    """How many leader elections are left."""

    def entry(self, producer_id: ProducerId) -> ProducerEntry:
        """Producer state of this producer id (ProducerStateEntry)."""
        return self.log.known.entry(producer_id)

    def verification(self, producer_id: ProducerId) -> Verification | None:
        """Verification state entry of this producer id (VerificationStateEntry)."""
        return dict(self.verifications).get(producer_id)

    def last_stable_offset(self, parameters: Parameters) -> Offset:
        """The last stable offset (LSO), the end of read_committed fetches."""
        return self.log.last_stable_offset(self.high_watermark, parameters)

    def readable(self, parameters: Parameters) -> frozenset[Offset]:
        """Offsets that a read_committed consumer gets when it reads to the LSO."""
        end = self.last_stable_offset(parameters)
        aborted = last_stable_offset.aborted_between(self.log.known.transactions, 0, end)
        return frozenset(last_stable_offset.readable(self.log.batches(), aborted, end))


BatchValidation: TypeAlias = Acceptance | Duplicate | Error


def check(leader: Leader, waiting: VerifiedBatch, parameters: Parameters) -> BatchValidation:
    """Producer-state validation of a batch about to be appended: accepted, duplicate, or an error.

    ProducerAppendInfo.
    """
    producer_id = waiting.batch.producer_id
    return producer_state.check(
        leader.entry(producer_id),
        waiting.batch,
        parameters,
        verification=leader.verification(producer_id),
        guard=waiting.guard,
    )


def keep(leader: Leader, producer_id: ProducerId, verification: Verification | None) -> Leader:
    """The leader with this verification state entry for a producer."""
    if verification is None:
        return leader
    others = tuple(one for one in leader.verifications if one[0] != producer_id)
    return leader._replace(verifications=(*others, (producer_id, verification)))


def append(leader: Leader, batch: Batch | Marker, source: Source = NO_SOURCE, *, replicated_at_once: bool) -> Leader:
    """Appends a batch or marker, which clears the producer's verification state entry (UnifiedLog.updateProducers)."""
    after = leader._replace(
        log=leader.log.append([Record(leader.epoch, source, batch)]),
        verifications=tuple(one for one in leader.verifications if one[0] != batch.producer_id),
    )
    return replicate(after) if replicated_at_once else after


def replicate(leader: Leader) -> Leader:
    """All followers reach the log end, and the high watermark advances to it."""
    return leader._replace(high_watermark=leader.log.end)


def succeeded(leader: Leader, log_end: Offset) -> Leader:
    """A new leader whose log ends at `log_end`; verifications and waiting batches of the old leader are lost."""
    return Leader(
        log=Log().append(leader.log.read(0, log_end)),
        high_watermark=leader.high_watermark,
        epoch=leader.epoch + 1,
        elections=leader.elections - 1,
    )
