"""Rules for single frames of Kafka's protocol: which requests or responses, and what becomes of them.

A connection carries one stream each way, and a broker answers its requests in their order. So nothing ever overtakes:
what is behind a frame that waits, on the same connection and in the same direction, waits too.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map

from lockstep.errors import UsageError

POSTPONE_MS_MAX = 86_400_000

OLD_APIS = frozenset({"LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown"})
"""Requests between brokers in ZooKeeper mode; Kafka 4 has none of them."""

APIS = OLD_APIS | {"".join(word.capitalize() for word in name.split("_")) for name in api_key_map.values()}

PARTITIONED = frozenset(
    {
        *("AddPartitionsToTxn", "AlterPartition", "AlterPartitionReassignments", "AlterReplicaLogDirs"),
        *("AlterShareGroupOffsets", "BeginQuorumEpoch", "DeleteRecords", "DescribeLogDirs", "DescribeProducers"),
        *("DescribeQuorum", "DescribeShareGroupOffsets", "ElectLeaders", "EndQuorumEpoch", "Fetch", "FetchSnapshot"),
        *("ListOffsets", "ListPartitionReassignments", "OffsetCommit", "OffsetDelete", "OffsetFetch"),
        *("OffsetForLeaderEpoch", "Produce", "StopReplica", "TxnOffsetCommit", "Vote", "WriteTxnMarkers"),
    }
)
"""APIs whose requests name partitions, so that a rule can match by partition.

A Fetch within a fetch session (followers and Java consumers) names only those partitions of which something has changed
since the one before, a full fetch (librdkafka) all.
"""

ANSWERABLE = frozenset(
    {
        *("AddOffsetsToTxn", "AddPartitionsToTxn", "ConsumerGroupHeartbeat", "EndTxn", "Fetch", "FindCoordinator"),
        *("Heartbeat", "InitProducerId", "JoinGroup", "LeaveGroup", "ListOffsets", "OffsetCommit", "Produce"),
        *("SyncGroup", "TxnOffsetCommit"),
    }
)
"""APIs whose requests the proxy can answer in the broker's place."""


class Side(StrEnum):
    """A frame is one or the other."""

    REQUEST = "request"
    RESPONSE = "response"


class _Rule(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", tag=str.lower):
    """Which frames; what is left open matches all.

    A response is matched by what its request says. One whose request went by before the rule was imposed has an api and
    a client id, but no partitions any more. Requests that name topics by id (Produce and Fetch from version 13 on,
    OffsetCommit from 10 on) are found by `topic_id`, as a `PartitionView` has it, others by `topic`; a rule may have
    both.
    """

    apis: tuple[str, ...]
    client_id: str | None = None
    topic: str | None = None
    topic_id: str | None = None
    partition: int | None = None
    times: int | None = None
    """Only so many frames, on all connections of the link together."""

    def __post_init__(self) -> None:
        if not self.apis:
            raise UsageError("a rule for frames names at least one api, such as Produce")
        if unknown := [api for api in self.apis if api not in APIS]:
            raise UsageError(f"Kafka has no api {', '.join(unknown)}: give Kafka's own name, such as InitProducerId")
        by_partition = (self.topic, self.topic_id, self.partition) != (None, None, None)
        if by_partition and (without := [api for api in self.apis if api not in PARTITIONED]):
            raise UsageError(f"{', '.join(without)} requests name no partitions: leave out topic and partition")
        if self.times is not None and self.times < 1:
            raise UsageError(f"a rule acts at least once, not {self.times} times")

    def _frames(self, side: Side) -> str:
        names = {"client": self.client_id, "topic": self.topic, "topic id": self.topic_id, "partition": self.partition}
        which = "".join(f", {name} {value}" for name, value in names.items() if value is not None)
        limit = "" if self.times is None else f", {self.times} times"
        return f"{' and '.join(self.apis)} {side}s{which}{limit}"


class Hold(_Rule, frozen=True, kw_only=True):
    """The frame, and all behind it, waits until the link is healed and then arrives, even at a peer that has given up.

    A request that is held until its client has closed the connection still reaches the broker afterwards, as one that
    was delayed in the network does; a response whose client has closed the connection is lost.
    """

    side: Side

    def __str__(self) -> str:
        return f"hold {self._frames(self.side)}"


class Drop(_Rule, frozen=True, kw_only=True):
    """The frame is lost, and its connection with it: closed at both ends, because TCP loses nothing in the middle.

    A broker has acted on a request whose response is dropped, and has never seen one that is dropped itself.
    """

    side: Side

    def __str__(self) -> str:
        return f"drop {self._frames(self.side)}"


class Postpone(_Rule, frozen=True, kw_only=True):
    """The frame arrives that much later, and what is behind it not before it."""

    side: Side
    ms: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.ms <= POSTPONE_MS_MAX:
            raise UsageError(f"a frame is postponed by 1 to {POSTPONE_MS_MAX} ms, not {self.ms}")

    def __str__(self) -> str:
        return f"postpone {self._frames(self.side)} by {self.ms} ms"


class Answer(_Rule, frozen=True, kw_only=True):
    """The broker never sees the request; the proxy answers it, in its turn, with this error for all that it asks for.

    A request without a response (Produce with acks=0) is refused as brokers do it: the connection is closed.
    """

    error_code: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if without := [api for api in self.apis if api not in ANSWERABLE]:
            raise UsageError(f"the proxy cannot answer {', '.join(without)}: it can {', '.join(sorted(ANSWERABLE))}")
        if self.error_code == 0 or self.error_code not in list(ErrorCode):
            raise UsageError(f"Kafka has no error with code {self.error_code}")

    def __str__(self) -> str:
        return f"answer {self._frames(Side.REQUEST)} with {ErrorCode(self.error_code).name.upper()}"


Rule = Hold | Drop | Postpone | Answer
