"""The promises that a run is judged by, and when Kafka makes them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """A named promise. Broken where the condition holds it is a violation, elsewhere it is permitted."""

    name: str
    promise: str
    condition: str


GUARANTEES: tuple[Guarantee, ...] = (
    Guarantee(
        name="no-lost-acks",
        promise="Every acknowledged record is in its partition when the partition is read to its end.",
        condition="The writer asked for acks=all.",
    ),
    Guarantee(
        name="one-value-per-offset",
        promise="An offset holds one record, the same for everybody, and it is the one that was acknowledged there.",
        condition="Of values that were read or acknowledged with acks=all.",
    ),
    Guarantee(
        name="no-duplicates",
        promise="Every record is at one offset of one partition only.",
        condition="The writer was idempotent.",
    ),
    Guarantee(
        name="no-phantoms",
        promise="Only what was sent, and did not certainly fail, is ever read.",
        condition="Always.",
    ),
    Guarantee(
        name="real-time-order",
        promise="A record whose send began after another's acknowledgement comes after it in the partition.",
        condition="Between records that are in the log; an acknowledged record counts where it was acknowledged.",
    ),
    Guarantee(
        name="monotonic-reads",
        promise="A reader sees the offsets of a partition strictly increase.",
        condition="Within one assignment, until it seeks.",
    ),
)
