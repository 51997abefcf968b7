"""Steps: each is one action, taken on the cluster and on the model. Brokers are given by the cluster's ids."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

import msgspec


class Reach(StrEnum):
    """The upper bound of a read: as read_uncommitted, as read_committed, or as a replica, which reads to the LEO."""

    HIGH_WATERMARK = "high watermark"
    LAST_STABLE_OFFSET = "last stable offset"
    LOG_END = "log end"


class _Step(msgspec.Struct, frozen=True, kw_only=True, tag_field="step", tag=str.lower):
    pass


class Sender(msgspec.Struct, frozen=True, kw_only=True):
    """Producer id, producer epoch and base sequence of an idempotent producer's batch."""

    producer_id: int
    epoch: int
    sequence: int

    def __str__(self) -> str:
        return f" as producer {self.producer_id} epoch {self.epoch} sequence {self.sequence}"


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Producer id and epoch in a transactional client's request, relative to those it got from the coordinator."""

    epochs: int = 0
    """The difference of the producer epoch: positive is too high, negative is one that was fenced."""
    stranger: bool = False
    """Whether the producer id is a wrong one."""

    def __str__(self) -> str:
        if self.stranger:
            return " with an unknown producer id"
        return f" {abs(self.epochs)} epoch too {'late' if self.epochs > 0 else 'early'}" if self.epochs else ""


class InTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """Producer and sequence of a transactional batch, relative to the correct ones."""

    identity: Identity = Identity()
    sequences: int = 0
    """The difference of the base sequence: positive leaves a gap."""

    def __str__(self) -> str:
        sequence = f", {self.sequences:+} sequences" if self.sequences else ""
        return f" in a transaction{self.identity}{sequence}"


class Write(_Step, frozen=True, kw_only=True):
    """Produce one batch. With acks=all the request may stay open, and its response arrive during a later step."""

    broker: int
    acks: int
    records: int = 1
    sender: Sender | None = None
    transaction: InTransaction | None = None
    corrupt: bool = False
    """The batch's CRC does not match its bytes."""

    def __str__(self) -> str:
        who = self.sender or self.transaction or ""
        damaged = ", damaged" if self.corrupt else ""
        return f"write {self.records} to {self.broker} with acks={self.acks}{who}{damaged}"


class Read(_Step, frozen=True, kw_only=True):
    """Fetch from any replica: as a consumer, or up to the LEO (replica id -3, FetchRequest.FUTURE_LOCAL_REPLICA_ID)."""

    broker: int
    offset: int
    reach: Reach = Reach.HIGH_WATERMARK
    leader_epoch: int | None = None

    def __str__(self) -> str:
        return f"read from {self.broker} at {self.offset} to the {self.reach}{_epoch(self.leader_epoch)}"


class Ask(_Step, frozen=True, kw_only=True):
    """ListOffsets: the log start offset, or the latest offset that the reader may see."""

    broker: int
    earliest: bool = False
    reach: Reach = Reach.LOG_END
    leader_epoch: int | None = None

    def __str__(self) -> str:
        what = "where its log starts" if self.earliest else f"for its {self.reach}"
        return f"ask {self.broker} {what}{_epoch(self.leader_epoch)}"


class AskEpochEnd(_Step, frozen=True, kw_only=True):
    """OffsetForLeaderEpoch: the end offset of a leader epoch."""

    broker: int
    epoch: int
    leader_epoch: int | None = None

    def __str__(self) -> str:
        return f"ask {self.broker} where epoch {self.epoch} ends{_epoch(self.leader_epoch)}"


class AskMetadata(_Step, frozen=True, kw_only=True):
    """Metadata request: leader, ISR and live brokers as one broker has them."""

    broker: int

    def __str__(self) -> str:
        return f"ask {self.broker} for metadata"


class InitProducer(_Step, frozen=True, kw_only=True):
    """InitProducerId to the transaction coordinator."""

    identity: Identity | None = None
    """The expected producer, as after an error (KIP-360); None for a new client."""

    def __str__(self) -> str:
        return "begin as a new producer" if self.identity is None else f"go on as the same producer{self.identity}"


class AddPartition(_Step, frozen=True, kw_only=True):
    """AddPartitionsToTxn with the partition under test."""

    identity: Identity = Identity()

    def __str__(self) -> str:
        return f"add the partition to the transaction{self.identity}"


class EndTransaction(_Step, frozen=True, kw_only=True):
    """EndTxn: commit or abort."""

    commit: bool
    identity: Identity = Identity()

    def __str__(self) -> str:
        return f"{'commit' if self.commit else 'abort'} the transaction{self.identity}"


class Claims(StrEnum):
    """Member id and generation (or member epoch) in a group request, relative to the correct ones."""

    RIGHT = "as it is"
    NO_MEMBER = "without a member id"
    STRANGER = "as a stranger"
    OLD = "in the generation before"
    NEXT = "in the generation after"


class Owned(StrEnum):
    """The owned partitions that a ConsumerGroupHeartbeat reports."""

    ALL = "all that it was given"
    SOME = "one less than it was given"
    UNSAID = "not said"


class _GroupStep(_Step, frozen=True, kw_only=True):
    """A group request of a consumer, to a broker that need not be the coordinator."""

    broker: int
    consumer: str


class Join(_GroupStep, frozen=True, kw_only=True):
    """JoinGroup of the classic protocol. Its response waits until the other members have joined."""

    claims: Claims = Claims.RIGHT

    def __str__(self) -> str:
        return f"{self.consumer} joins at {self.broker} {self.claims}"


class Sync(_GroupStep, frozen=True, kw_only=True):
    """SyncGroup of the classic protocol. The group leader's carries the assignment, for which other members wait."""

    claims: Claims = Claims.RIGHT

    def __str__(self) -> str:
        return f"{self.consumer} syncs at {self.broker} {self.claims}"


class Beat(_GroupStep, frozen=True, kw_only=True):
    """Heartbeat of the classic protocol."""

    claims: Claims = Claims.RIGHT

    def __str__(self) -> str:
        return f"{self.consumer} sends a heartbeat to {self.broker} {self.claims}"


class Leave(_GroupStep, frozen=True, kw_only=True):
    """LeaveGroup of the classic protocol."""

    claims: Claims = Claims.RIGHT

    def __str__(self) -> str:
        return f"{self.consumer} leaves at {self.broker} {self.claims}"


class Enter(_GroupStep, frozen=True, kw_only=True):
    """The first ConsumerGroupHeartbeat of a member, with member epoch 0 (KIP-848)."""

    def __str__(self) -> str:
        return f"{self.consumer} enters at {self.broker}"


class Report(_GroupStep, frozen=True, kw_only=True):
    """ConsumerGroupHeartbeat of a member (KIP-848)."""

    claims: Claims = Claims.RIGHT
    owned: Owned = Owned.ALL

    def __str__(self) -> str:
        return f"{self.consumer} reports to {self.broker} {self.claims}, owned: {self.owned}"


class Exit(_GroupStep, frozen=True, kw_only=True):
    """The last ConsumerGroupHeartbeat of a member (KIP-848), with epoch -1, or -2 for a static member that returns."""

    for_now: bool = False

    def __str__(self) -> str:
        return f"{self.consumer} exits at {self.broker}{' for now' if self.for_now else ''}"


class Commit(_GroupStep, frozen=True, kw_only=True):
    """OffsetCommit of one partition in the consumer's group."""

    partition: int
    offset: int
    claims: Claims = Claims.RIGHT

    def __str__(self) -> str:
        return f"{self.consumer} commits {self.offset} of {self.partition} to {self.broker} {self.claims}"


class Committed(_GroupStep, frozen=True, kw_only=True):
    """OffsetFetch: the committed offset of one partition in the consumer's group."""

    partition: int
    claims: Claims = Claims.NO_MEMBER

    def __str__(self) -> str:
        return f"{self.consumer} asks {self.broker} what is committed of {self.partition} {self.claims}"


class Kill(_Step, frozen=True, kw_only=True):
    """Kill a broker's process with SIGKILL: its log survives in the page cache."""

    broker: int

    def __str__(self) -> str:
        return f"kill {self.broker}"


class Crash(_Step, frozen=True, kw_only=True):
    """Kill a broker as if its machine lost power: the unflushed end of its log is lost."""

    broker: int
    end: int
    """The LEO that is left: records from this offset on were not flushed."""

    def __str__(self) -> str:
        return f"let the machine of {self.broker} lose power, so that its log ends at {self.end}"


class Stop(_Step, frozen=True, kw_only=True):
    """Controlled shutdown of a broker."""

    broker: int

    def __str__(self) -> str:
        return f"stop {self.broker}"


class Start(_Step, frozen=True, kw_only=True):
    broker: int

    def __str__(self) -> str:
        return f"start {self.broker}"


class Pause(_Step, frozen=True, kw_only=True):
    """Suspend a broker's process, which keeps its connections and its memory."""

    broker: int

    def __str__(self) -> str:
        return f"pause {self.broker}"


class Resume(_Step, frozen=True, kw_only=True):
    broker: int

    def __str__(self) -> str:
        return f"resume {self.broker}"


class Cut(_Step, frozen=True, kw_only=True):
    """Cut the replication link over which a follower fetches from another broker."""

    follower: int
    leader: int

    def __str__(self) -> str:
        return f"cut {self.follower} off from {self.leader}"


class Mend(_Step, frozen=True, kw_only=True):
    """Heal a replication link, in both directions or for requests only."""

    follower: int
    leader: int
    answers: bool = True
    """If false, fetch requests pass and responses do not: the leader learns the follower's LEO, which cannot grow."""

    def __str__(self) -> str:
        return f"let {self.follower} {'reach' if self.answers else 'ask'} {self.leader} again"


class Talk(StrEnum):
    """Kinds of control-plane messages between a broker and the controller."""

    METADATA = "what the controller decides"
    HEARTBEATS = "its heartbeats"
    ISR_REQUESTS = "the ISRs that it asks for"
    ISR_ANSWERS = "the answers about ISRs"


class Withhold(_Step, frozen=True, kw_only=True):
    """Hold back one kind of message between a broker and the controller; the others pass."""

    broker: int
    talk: Talk

    def __str__(self) -> str:
        return f"withhold from {self.broker} or its controller: {self.talk}"


class Release(_Step, frozen=True, kw_only=True):
    """Let a kind of message pass again that was held back."""

    broker: int
    talk: Talk

    def __str__(self) -> str:
        return f"let pass for {self.broker}: {self.talk}"


class Elect(_Step, frozen=True, kw_only=True):
    """ElectLeaders: a preferred or an unclean election."""

    unclean: bool = False

    def __str__(self) -> str:
        return "elect uncleanly" if self.unclean else "elect the preferred leader"


class Reassign(_Step, frozen=True, kw_only=True):
    """AlterPartitionReassignments to these replicas, in the order of preference."""

    replicas: tuple[int, ...]

    def __str__(self) -> str:
        return f"reassign to {list(self.replicas)}"


class SetMinIsr(_Step, frozen=True, kw_only=True):
    """Set the topic's min.insync.replicas, and wait until all running brokers apply it."""

    value: int

    def __str__(self) -> str:
        return f"set min.insync.replicas to {self.value}"


class Until(StrEnum):
    """Conditions for which a step can wait."""

    ANSWERS = "open operations are answered"
    IN_SYNC = "all replicas that run are in the ISR"
    SHRUNK = "the ISR is smaller"
    LED = "a broker that runs leads"
    LEADERLESS = "no broker leads"
    ALONE = "the leader is alone in the ISR"
    REGISTERED = "all that run are known to the controller"
    FENCED = "the session of every silent broker has expired"
    GROUP_ANSWERS = "consumers are answered"


class Wait(_Step, frozen=True, kw_only=True):
    """Wait until a condition is observed, or a time limit is reached."""

    until: Until

    def __str__(self) -> str:
        return f"wait until {self.until}"


class Idle(_Step, frozen=True, kw_only=True):
    """Let so much time pass, and observe whatever happens in it."""

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
