"""The leader of one partition, as far as transactions are concerned: its log, and what it knows from it.

What followers have is the log up to the high watermark, and perhaps more: the next leader has at least that.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition import last_stable_offset, producer_state
from lockstep_model.partition.log import Log, Offset, Record
from lockstep_model.partition.producer_state import (
    Accepted,
    Batch,
    Duplicate,
    Marker,
    ProducerEntry,
    ProducerId,
    Verification,
)

Source: TypeAlias = int
"""Which transaction of which client a record was written in, as the value of the record: what Kafka cannot know, and
must not mix up."""
NO_SOURCE: Source = -1
"""Of markers."""
_MOST_TRANSACTIONS = 100


def source_of(client: str, transaction: int) -> Source:
    """The source of what a client writes in its first, second... transaction."""
    return ord(client) * _MOST_TRANSACTIONS + transaction


def client_of(source: Source) -> str:
    """Who wrote it."""
    return chr(source // _MOST_TRANSACTIONS)


class Verified(NamedTuple):
    """A batch whose verification succeeded, or was not needed, and that is about to be appended."""

    batch: Batch
    source: Source
    guard: Offset | None


class Leader(NamedTuple):
    """One leader after another, of the same partition."""

    log: Log = Log()
    high_watermark: Offset = 0
    epoch: int = 0
    verifications: tuple[tuple[ProducerId, Verification], ...] = ()
    waiting: frozenset[Verified] = frozenset()
    unacknowledged: tuple[Marker, Offset] | None = None
    """The last marker, until its coordinator knows that it is replicated."""
    elections: int = 0
    """How many times another leader may still be elected."""

    def entry(self, producer_id: ProducerId) -> ProducerEntry:
        """What is known of this producer."""
        return self.log.known.entry(producer_id)

    def verification(self, producer_id: ProducerId) -> Verification | None:
        """What stands for this producer."""
        return dict(self.verifications).get(producer_id)

    def last_stable_offset(self, parameters: Parameters) -> Offset:
        """Where readers of committed records stop."""
        return self.log.last_stable_offset(self.high_watermark, parameters)

    def readable(self, parameters: Parameters) -> frozenset[Offset]:
        """What a reader of committed records has been given when it has read all that it may."""
        end = self.last_stable_offset(parameters)
        aborted = last_stable_offset.aborted_between(self.log.known.transactions, 0, end)
        return frozenset(last_stable_offset.readable(self.log.batches(), aborted, end))


Checked: TypeAlias = Accepted | Duplicate | Error


def check(leader: Leader, waiting: Verified, parameters: Parameters) -> Checked:
    """What the leader does with a batch that is about to be appended."""
    producer_id = waiting.batch.producer_id
    return producer_state.check(
        leader.entry(producer_id),
        waiting.batch,
        parameters,
        verification=leader.verification(producer_id),
        guard=waiting.guard,
    )


def keep(leader: Leader, producer_id: ProducerId, verification: Verification | None) -> Leader:
    """With what stands for this producer now."""
    if verification is None:
        return leader
    others = tuple(one for one in leader.verifications if one[0] != producer_id)
    return leader._replace(verifications=(*others, (producer_id, verification)))


def append(leader: Leader, batch: Batch | Marker, source: Source = NO_SOURCE, *, replicated_at_once: bool) -> Leader:
    """This is in the log now; no verification of its producer stands any more (UnifiedLog.updateProducers)."""
    after = leader._replace(
        log=leader.log.append([Record(leader.epoch, source, batch)]),
        verifications=tuple(one for one in leader.verifications if one[0] != batch.producer_id),
    )
    return replicate(after) if replicated_at_once else after


def replicate(leader: Leader) -> Leader:
    """The followers have everything."""
    return leader._replace(high_watermark=leader.log.end)


def succeeded(leader: Leader, log_end: Offset) -> Leader:
    """Another replica leads, with a log that ends here; whatever was under way at the old leader is gone."""
    return Leader(
        log=Log().append(leader.log.read(0, log_end)),
        high_watermark=leader.high_watermark,
        epoch=leader.epoch + 1,
        elections=leader.elections - 1,
    )
