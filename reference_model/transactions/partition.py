"""The leader of one partition, as far as transactions are concerned: its log, and what it knows from it.

What followers have is the log up to the high watermark, and perhaps more: the next leader has at least that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from reference_model import producer_state
from reference_model.errors import Error
from reference_model.parameters import Parameters
from reference_model.producer_state import (
    NOBODY,
    Accepted,
    Batch,
    Duplicate,
    Marker,
    Offset,
    ProducerEntry,
    ProducerId,
    Verification,
)
from reference_model.transactions import lso


class Source(NamedTuple):
    """Which transaction of which client a record was written in: what Kafka cannot know, and must not mix up."""

    client: str
    transaction: int


class Written(NamedTuple):
    """A batch of one record, or a marker, at the offset that is its place in the log."""

    batch: Batch | Marker
    source: Source | None = None


class Waiting(NamedTuple):
    """A batch whose verification succeeded and that is about to be appended."""

    batch: Batch
    source: Source
    guard: Offset | None


class Leader(NamedTuple):
    """Everything but the log, the high watermark and what is under way follows from these."""

    log: tuple[Written, ...] = ()
    high_watermark: Offset = 0
    transactions: lso.Transactions = lso.Transactions()
    verifications: tuple[tuple[ProducerId, Verification], ...] = ()
    waiting: frozenset[Waiting] = frozenset()
    unacknowledged: tuple[Marker, Offset] | None = None
    """The last marker, until its coordinator knows that it is replicated."""
    elections: int = 0
    """How many times another leader may still be elected."""

    def entry(self, producer_id: ProducerId) -> ProducerEntry:
        """What is known of this producer."""
        return producer_state.replay(self.logged()).get(producer_id, NOBODY)

    def verification(self, producer_id: ProducerId) -> Verification | None:
        """What stands for this producer."""
        return dict(self.verifications).get(producer_id)

    def logged(self) -> Iterator[tuple[Offset, Batch | Marker]]:
        """The log as other rules look at it."""
        return ((offset, written.batch) for offset, written in enumerate(self.log))

    def last_stable_offset(self, parameters: Parameters) -> Offset:
        """Where readers of committed records stop."""
        return lso.last_stable_offset(self.transactions, self.high_watermark, parameters)

    def readable(self, parameters: Parameters) -> frozenset[Offset]:
        """What a reader of committed records has been given when it has read all that it may."""
        end = self.last_stable_offset(parameters)
        return frozenset(lso.readable(self.logged(), lso.aborted_between(self.transactions, 0, end), end))


Checked: TypeAlias = Accepted | Duplicate | Error


def check(leader: Leader, waiting: Waiting, parameters: Parameters) -> Checked:
    """What the leader does with a batch that is about to be appended."""
    producer_id = waiting.batch.producer_id
    return producer_state.check(
        leader.entry(producer_id),
        waiting.batch,
        parameters,
        verification=leader.verification(producer_id),
        guard=waiting.guard,
    )


def verifying(leader: Leader, batch: Batch, parameters: Parameters) -> tuple[Leader, Verification | Error | None]:
    """Before the coordinator is asked about this batch, or not asked as it need not be, or must not."""
    standing = leader.verification(batch.producer_id)
    answer = producer_state.start_verification(
        leader.entry(batch.producer_id), batch, len(leader.log), standing, parameters
    )
    if not isinstance(answer, Verification):
        return leader, answer
    others = tuple(one for one in leader.verifications if one[0] != batch.producer_id)
    return leader._replace(verifications=(*others, (batch.producer_id, answer))), answer


def append(leader: Leader, written: Written, *, replicated_at_once: bool) -> Leader:
    """This is in the log now; no verification of its producer stands any more (UnifiedLog.updateProducers)."""
    after = leader._replace(
        log=(*leader.log, written),
        transactions=lso.followed(leader.transactions, written.batch, len(leader.log)),
        verifications=tuple(one for one in leader.verifications if one[0] != written.batch.producer_id),
    )
    return replicate(after) if replicated_at_once else after


def replicate(leader: Leader) -> Leader:
    """The followers have everything."""
    end = len(leader.log)
    return leader._replace(high_watermark=end, transactions=lso.replicated(leader.transactions, end))


def succeeded(leader: Leader, log_end: Offset) -> Leader:
    """Another replica leads, with a log that ends here; whatever was under way at the old leader is gone."""
    log = leader.log[:log_end]
    after = Leader(log=log, high_watermark=leader.high_watermark, elections=leader.elections - 1)
    return after._replace(transactions=lso.replay(after.logged(), leader.high_watermark))
