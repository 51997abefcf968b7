"""Counterexamples that Kafka is known to follow: the invariants that each violates, and the finding that documents it.

A violation that is exactly the documented one is permitted, as a loss with acks=1 is: the run reports it and passes.
Any other violation fails the run. A documented violation that no longer occurs is reported, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lockstep_model.parameters import Mode
from lockstep_model.replication import invariants

FINDINGS = "docs/findings.md"


class Known(NamedTuple):
    """A counterexample that Kafka is known to follow in one mode."""

    mode: Mode
    breaks: frozenset[str]
    """Exactly the invariants that are violated then."""
    heading: str

    @property
    def finding(self) -> str:
        """The page and heading that document it."""
        return f"{FINDINGS}: {self.heading}"

    def permits(self, broken: Iterable[str]) -> bool:
        """Whether these are exactly the documented violations."""
        return frozenset(broken) == self.breaks


PERMITTED: Mapping[str, Known] = {
    "kip320:hw-epoch": Known(
        Mode.KRAFT,  # the ZooKeeper-mode controller sends LeaderAndIsr for every leader in turn
        frozenset({invariants.LEADER_CANDIDATE_COMPLETENESS}),
        "A leader that missed a leader in between commits what a member of the ISR has truncated",
    ),
}
"""Known violations by the name of the counterexample."""


def known_of(name: str, mode: Mode) -> Known | None:
    """The known violation of a counterexample in this mode, if there is one."""
    known = PERMITTED.get(name)
    return known if known is not None and known.mode is mode else None
