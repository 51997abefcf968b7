"""The targets of faults: roles rather than nodes, resolved when the step happens."""

from __future__ import annotations

from typing import Literal

import msgspec


class LeaderOf(msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="leader"):
    """Whichever broker leads the partition when the step happens."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"leader of {self.topic}-{self.partition}"


class FollowerOf(msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="follower"):
    """The first replica of the partition, in the order of its assignment, that is in sync and does not lead."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"follower of {self.topic}-{self.partition}"


class OneBroker(msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="broker"):
    """One broker by its id."""

    id: int

    def __str__(self) -> str:
        return f"broker {self.id}"


class ActiveController(msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="controller"):
    """The leader of the KRaft quorum, or the broker that ZooKeeper names."""

    def __str__(self) -> str:
        return "active controller"


class OneZooKeeper(msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="zookeeper"):
    """One ZooKeeper server by its id."""

    id: int

    def __str__(self) -> str:
        return f"ZooKeeper server {self.id}"


class WholeCluster(msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="cluster"):
    """The whole cluster: for faults that pick their own targets, or that hit all nodes."""

    def __str__(self) -> str:
        return "cluster"


class OneTopic(msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="topic"):
    """One topic by its name."""

    topic: str

    def __str__(self) -> str:
        return f"topic {self.topic}"


class ClientSide(msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="clients"):
    """All clients that connect through the links of one side, to one broker or to all of them."""

    side: Literal["clients", "clients-b"] = "clients"
    broker: int | None = None

    def __str__(self) -> str:
        return f"{self.side} of " + ("all brokers" if self.broker is None else f"broker {self.broker}")


Target = LeaderOf | FollowerOf | OneBroker | ActiveController | OneZooKeeper | WholeCluster | OneTopic | ClientSide


def role(kind: type) -> str:
    """The name of a kind of target, as plans and lists write it."""
    return str(kind.__struct_config__.tag)  # type: ignore[attr-defined]
