"""The conditions that a fault can put a link into, each until the link is healed.

The values are sent to the proxy server as they are and read back from it: it, and no Python process, knows in which
condition a link is.
"""

from __future__ import annotations

import msgspec

from lockstep.errors import UsageError
from lockstep.network.frames import Rule

# What the proxy server accepts.
DELAY_MS_MAX = 86_400_000
THROTTLE_KB_PER_S_MAX = 10_000_000


def _kebab(name: str) -> str:
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")


class _Condition(msgspec.Struct, frozen=True, tag_field="kind", tag=_kebab):
    def __str__(self) -> str:
        return str(self.__struct_config__.tag)


class Open(_Condition, frozen=True):
    """The link works."""


class Cut(_Condition, frozen=True):
    """Connections are closed and new ones refused."""


class BlackHole(_Condition, frozen=True):
    """Silence: connections stay, new ones are accepted, and nothing gets through either way, not even their end.

    As after a real partition, what was under way arrives when the link is mended, unless an end has given up. One thing
    a proxy cannot do: a new connection to a destination that is dead is closed instead of ignored.
    """


class OneWay(_Condition, frozen=True):
    """Requests pass, responses do not."""


class Delay(_Condition, frozen=True):
    """Everything takes longer, each way; the jitter is a sequence for each link and direction that the seed fixes."""

    ms: int
    jitter_ms: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.ms <= DELAY_MS_MAX:
            raise UsageError(f"a delay lasts from 1 to {DELAY_MS_MAX} ms, not {self.ms}")
        if not 0 <= self.jitter_ms <= self.ms:
            raise UsageError(f"a delay of {self.ms} ms cannot vary by {self.jitter_ms}: give a jitter up to {self.ms}")
        if not 0 <= self.seed < 2**64:
            raise UsageError(f"a seed is a number from 0 to 2^64 - 1, not {self.seed}")

    def __str__(self) -> str:
        return f"delayed by {self.ms} ms" + (f" +- {self.jitter_ms}" if self.jitter_ms else "")


class Throttle(_Condition, frozen=True):
    """All connections of the link together pass that many bytes (in 1000) each second, each way."""

    kb_per_s: int

    def __post_init__(self) -> None:
        if not 1 <= self.kb_per_s <= THROTTLE_KB_PER_S_MAX:
            raise UsageError(f"a link is throttled to 1 to {THROTTLE_KB_PER_S_MAX} kB/s, not {self.kb_per_s}")

    def __str__(self) -> str:
        return f"throttled to {self.kb_per_s} kB/s"


class Reset(_Condition, frozen=True):
    """Connections, and new ones as soon as they are accepted, are ended with RST at both ends."""


class HalfOpen(_Condition, frozen=True):
    """The destination may close or die and the source is not told: its connection stays, silent."""


class Frames(_Condition, frozen=True):
    """Single requests or responses meet with something; of several rules for a frame the first acts.

    Frames that began before, streams with TLS and whatever else is not Kafka's plain protocol pass untouched.
    """

    rules: tuple[Rule, ...]

    def __post_init__(self) -> None:
        if not self.rules:
            raise UsageError("give at least one rule for frames, such as a Hold")

    def __str__(self) -> str:
        return "; ".join(map(str, self.rules))


Condition = Open | Cut | BlackHole | OneWay | Delay | Throttle | Reset | HalfOpen | Frames
