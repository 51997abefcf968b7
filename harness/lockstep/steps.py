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


class Write(_Step, frozen=True, kw_only=True):
    """Produce one batch. One with acks=all may stay open, and is answered during a later step."""

    broker: int
    acks: int
    records: int = 1
    sender: Sender | None = None

    def __str__(self) -> str:
        return f"write {self.records} to {self.broker} with acks={self.acks}{self.sender or ''}"


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


class Kill(_Step, frozen=True, kw_only=True):
    broker: int

    def __str__(self) -> str:
        return f"kill {self.broker}"


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

    def __str__(self) -> str:
        return f"let {self.follower} reach {self.leader} again"


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


class Until(StrEnum):
    """What may be waited for."""

    ANSWERS = "open operations are answered"
    IN_SYNC = "all replicas that run are in the ISR"
    SHRUNK = "the ISR is smaller"
    LED = "a broker that runs leads"
    LEADERLESS = "nobody leads"
    ALONE = "the leader is alone in the ISR"
    REGISTERED = "all that run are known to the controller"


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
Fault: TypeAlias = Kill | Stop | Start | Pause | Resume | Cut | Mend
Step: TypeAlias = Request | Fault | Elect | Reassign | Wait | Idle


def _epoch(epoch: int | None) -> str:
    return "" if epoch is None else f" knowing epoch {epoch}"
