"""Steps: each is one action on the cluster and on the model. Brokers are named by their ids."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

import msgspec


class Reach(StrEnum):
    """How far somebody reads."""

    HIGH_WATERMARK = "high watermark"
    LAST_STABLE_OFFSET = "last stable offset"
    LOG_END = "log end"


class _Step(msgspec.Struct, frozen=True, kw_only=True, tag_field="step", tag=str.lower):
    pass


class Sender(msgspec.Struct, frozen=True, kw_only=True):
    """What an idempotent producer says of itself and of its batch."""

    producer_id: int
    epoch: int
    sequence: int

    def __str__(self) -> str:
        return f" as producer {self.producer_id} epoch {self.epoch} sequence {self.sequence}"


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Who a client with a transactional id says it is, as compared with what it was last told: right, or not."""

    epochs: int = 0
    """How many epochs later it says it has."""
    stranger: bool = False
    """Whether it gives another producer id."""

    def __str__(self) -> str:
        if self.stranger:
            return " as somebody else"
        return f" {abs(self.epochs)} epoch too {'late' if self.epochs > 0 else 'early'}" if self.epochs else ""


class InTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """What a client says of a batch of its transaction."""

    identity: Identity = Identity()
    sequences: int = 0
    """By how much its sequence is too high."""

    def __str__(self) -> str:
        sequence = f", {self.sequences:+} sequences" if self.sequences else ""
        return f" in a transaction{self.identity}{sequence}"


class Write(_Step, frozen=True, kw_only=True):
    """Produce one batch. One with acks=all may stay open, and is answered during a later step."""

    broker: int
    acks: int
    records: int = 1
    sender: Sender | None = None
    transaction: InTransaction | None = None
    corrupt: bool = False
    """With a checksum that is not that of its bytes."""

    def __str__(self) -> str:
        who = self.sender or self.transaction or ""
        damaged = ", damaged" if self.corrupt else ""
        return f"write {self.records} to {self.broker} with acks={self.acks}{who}{damaged}"


class Read(_Step, frozen=True, kw_only=True):
    """Fetch from any replica, as a consumer or to its very end."""

    broker: int
    offset: int
    reach: Reach = Reach.HIGH_WATERMARK
    leader_epoch: int | None = None

    def __str__(self) -> str:
        return f"read from {self.broker} at {self.offset} to the {self.reach}{_epoch(self.leader_epoch)}"


class Ask(_Step, frozen=True, kw_only=True):
    """Ask a replica where its log ends or starts."""

    broker: int
    earliest: bool = False
    reach: Reach = Reach.LOG_END
    leader_epoch: int | None = None

    def __str__(self) -> str:
        what = "where its log starts" if self.earliest else f"for its {self.reach}"
        return f"ask {self.broker} {what}{_epoch(self.leader_epoch)}"


class AskEpochEnd(_Step, frozen=True, kw_only=True):
    """Ask a leader where an epoch ends."""

    broker: int
    epoch: int
    leader_epoch: int | None = None

    def __str__(self) -> str:
        return f"ask {self.broker} where epoch {self.epoch} ends{_epoch(self.leader_epoch)}"


class AskMetadata(_Step, frozen=True, kw_only=True):
    """Ask a broker who leads, who is in sync and who is there."""

    broker: int

    def __str__(self) -> str:
        return f"ask {self.broker} for metadata"


class InitProducer(_Step, frozen=True, kw_only=True):
    """Ask the coordinator of the transactional id who its producer is: as a new client, or after an error."""

    identity: Identity | None = None

    def __str__(self) -> str:
        return "begin as a new producer" if self.identity is None else f"go on as the same producer{self.identity}"


class AddPartition(_Step, frozen=True, kw_only=True):
    """Say that the partition is about to be written in the transaction."""

    identity: Identity = Identity()

    def __str__(self) -> str:
        return f"add the partition to the transaction{self.identity}"


class EndTransaction(_Step, frozen=True, kw_only=True):
    commit: bool
    identity: Identity = Identity()

    def __str__(self) -> str:
        return f"{'commit' if self.commit else 'abort'} the transaction{self.identity}"


class Claims(StrEnum):
    """What a consumer says of itself to its group."""

    RIGHT = "as it is"
    NOBODY = "as nobody"
    STRANGER = "as a stranger"
    OLD = "in the generation before"
    NEXT = "in the generation after"


class Owned(StrEnum):
    """Which partitions a consumer says it owns."""

    ALL = "all that it was given"
    SOME = "one less than it was given"
    UNSAID = "not said"


class _GroupStep(_Step, frozen=True, kw_only=True):
    """A request of a consumer, to a broker that need not be its coordinator."""

    broker: int
    consumer: str


class Join(_GroupStep, frozen=True, kw_only=True):
    """Join a classic group. It may stay open until the others have joined, and is answered during a later step."""

    claims: Claims = Claims.RIGHT

    def __str__(self) -> str:
        return f"{self.consumer} joins at {self.broker} {self.claims}"


class Sync(_GroupStep, frozen=True, kw_only=True):
    """Ask for one's partitions, or if one leads, assign them. It may stay open until the leader has."""

    claims: Claims = Claims.RIGHT

    def __str__(self) -> str:
        return f"{self.consumer} syncs at {self.broker} {self.claims}"


class Beat(_GroupStep, frozen=True, kw_only=True):
    """Heartbeat of the classic protocol."""

    claims: Claims = Claims.RIGHT

    def __str__(self) -> str:
        return f"{self.consumer} sends a heartbeat to {self.broker} {self.claims}"


class Leave(_GroupStep, frozen=True, kw_only=True):
    """Leave a classic group."""

    claims: Claims = Claims.RIGHT

    def __str__(self) -> str:
        return f"{self.consumer} leaves at {self.broker} {self.claims}"


class Enter(_GroupStep, frozen=True, kw_only=True):
    """Join a group of the consumer protocol."""

    def __str__(self) -> str:
        return f"{self.consumer} enters at {self.broker}"


class Report(_GroupStep, frozen=True, kw_only=True):
    """Heartbeat of the consumer protocol."""

    claims: Claims = Claims.RIGHT
    owned: Owned = Owned.ALL

    def __str__(self) -> str:
        return f"{self.consumer} reports to {self.broker} {self.claims}, owned: {self.owned}"


class Exit(_GroupStep, frozen=True, kw_only=True):
    """Leave a group of the consumer protocol, for good or to come back."""

    for_now: bool = False

    def __str__(self) -> str:
        return f"{self.consumer} exits at {self.broker}{' for now' if self.for_now else ''}"


class Commit(_GroupStep, frozen=True, kw_only=True):
    """Commit an offset in the group of this consumer."""

    partition: int
    offset: int
    claims: Claims = Claims.RIGHT

    def __str__(self) -> str:
        return f"{self.consumer} commits {self.offset} of {self.partition} to {self.broker} {self.claims}"


class Committed(_GroupStep, frozen=True, kw_only=True):
    """Ask which offset the group of this consumer has committed."""

    partition: int
    claims: Claims = Claims.NOBODY

    def __str__(self) -> str:
        return f"{self.consumer} asks {self.broker} what is committed of {self.partition} {self.claims}"


class Kill(_Step, frozen=True, kw_only=True):
    broker: int

    def __str__(self) -> str:
        return f"kill {self.broker}"


class Crash(_Step, frozen=True, kw_only=True):
    """Kill a broker as if its machine lost power: what comes behind an offset was not flushed, and is gone."""

    broker: int
    end: int

    def __str__(self) -> str:
        return f"let the machine of {self.broker} lose power, so that its log ends at {self.end}"


class Stop(_Step, frozen=True, kw_only=True):
    """Shut a broker down in good order."""

    broker: int

    def __str__(self) -> str:
        return f"stop {self.broker}"


class Start(_Step, frozen=True, kw_only=True):
    broker: int

    def __str__(self) -> str:
        return f"start {self.broker}"


class Pause(_Step, frozen=True, kw_only=True):
    broker: int

    def __str__(self) -> str:
        return f"pause {self.broker}"


class Resume(_Step, frozen=True, kw_only=True):
    broker: int

    def __str__(self) -> str:
        return f"resume {self.broker}"


class Cut(_Step, frozen=True, kw_only=True):
    """Let a follower fetch no more from another broker."""

    follower: int
    leader: int

    def __str__(self) -> str:
        return f"cut {self.follower} off from {self.leader}"


class Mend(_Step, frozen=True, kw_only=True):
    follower: int
    leader: int
    answers: bool = True
    """Whether it is answered, too; otherwise the leader hears how far it is, and it gets nothing."""

    def __str__(self) -> str:
        return f"let {self.follower} {'reach' if self.answers else 'ask'} {self.leader} again"


class Talk(StrEnum):
    """What a broker and its controller say to each other."""

    METADATA = "what the controller decides"
    HEARTBEATS = "its heartbeats"
    ISR_REQUESTS = "the ISRs that it asks for"
    ISR_ANSWERS = "the answers about ISRs"


class Withhold(_Step, frozen=True, kw_only=True):
    """Let something not pass between a broker and its controller; the rest does."""

    broker: int
    talk: Talk

    def __str__(self) -> str:
        return f"withhold from {self.broker} or its controller: {self.talk}"


class Release(_Step, frozen=True, kw_only=True):
    """Let it pass again."""

    broker: int
    talk: Talk

    def __str__(self) -> str:
        return f"let pass for {self.broker}: {self.talk}"


class Elect(_Step, frozen=True, kw_only=True):
    """Ask for an election."""

    unclean: bool = False

    def __str__(self) -> str:
        return "elect uncleanly" if self.unclean else "elect the preferred leader"


class Reassign(_Step, frozen=True, kw_only=True):
    """Ask for the partition to be on these brokers."""

    replicas: tuple[int, ...]

    def __str__(self) -> str:
        return f"reassign to {list(self.replicas)}"


class SetMinIsr(_Step, frozen=True, kw_only=True):
    """Set the topic's min.insync.replicas, and wait until all that run go by it."""

    value: int

    def __str__(self) -> str:
        return f"set min.insync.replicas to {self.value}"


class Until(StrEnum):
    """What may be waited for."""

    ANSWERS = "open operations are answered"
    IN_SYNC = "all replicas that run are in the ISR"
    SHRUNK = "the ISR is smaller"
    LED = "a broker that runs leads"
    LEADERLESS = "nobody leads"
    ALONE = "the leader is alone in the ISR"
    REGISTERED = "all that run are known to the controller"
    FENCED = "nobody is in session of whom the controller hears nothing"
    GROUP_ANSWERS = "consumers are answered"


class Wait(_Step, frozen=True, kw_only=True):
    """Let time pass until something is seen, or does not come about in time."""

    until: Until

    def __str__(self) -> str:
        return f"wait until {self.until}"


class Idle(_Step, frozen=True, kw_only=True):
    """Let so much time pass, to see what does not come about in it."""

    ms: int

    def __str__(self) -> str:
        return f"let {self.ms} ms pass"


Request: TypeAlias = Write | Read | Ask | AskEpochEnd
Transact: TypeAlias = InitProducer | AddPartition | EndTransaction
GroupStep: TypeAlias = Join | Sync | Beat | Leave | Enter | Report | Exit | Commit | Committed
Fault: TypeAlias = Kill | Crash | Stop | Start | Pause | Resume | Cut | Mend | Withhold | Release
Administer: TypeAlias = Elect | Reassign | SetMinIsr
Step: TypeAlias = Request | AskMetadata | Transact | GroupStep | Fault | Administer | Wait | Idle


def _epoch(epoch: int | None) -> str:
    return "" if epoch is None else f" knowing epoch {epoch}"
