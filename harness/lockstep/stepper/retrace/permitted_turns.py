"""Bad turns that Kafka is known to take: what is broken by each, and where that is written down.

One that is taken as it is written down is permitted, as a loss with acks=1 is: it is told, and no run fails by it.
Anything else that breaks there is a violation, and one that is no longer taken is told, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lockstep_model.parameters import Mode
from lockstep_model.replication import invariants

FINDINGS = "docs/findings.md"


class Known(NamedTuple):
    """A bad turn that Kafka takes in one mode."""

    mode: Mode
    breaks: frozenset[str]
    """The promises that are not kept then, and no others."""
    heading: str

    @property
    def finding(self) -> str:
        """Where it is written down."""
        return f"{FINDINGS}: {self.heading}"

    def permits(self, broken: Iterable[str]) -> bool:
        """Whether this is what is known to be broken, and nothing else."""
        return frozenset(broken) == self.breaks


PERMITTED: Mapping[str, Known] = {
    "kip320:hw-epoch": Known(
        Mode.KRAFT,  # ZooKeeper's controller tells of every leader, one after the other
        frozenset({invariants.LEADER_CANDIDATE_COMPLETENESS}),
        "A leader that missed a leader in between commits what a member of the ISR has truncated",
    ),
}
"""By the names of the counterexamples."""


def known_of(name: str, mode: Mode) -> Known | None:
    """What is known of the bad turn of a counterexample."""
    known = PERMITTED.get(name)
    return known if known is not None and known.mode is mode else None
