"""Bad turns that Kafka is known to take: what is broken by each, and where that is written down.

One that is taken as it is written down is permitted, as a loss with acks=1 is: it is told, and no run fails by it.
Anything else that breaks there is a violation, and one that is no longer taken is told, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from reference_model import invariants

FINDINGS = "docs/findings.md"


class Known(NamedTuple):
    """A bad turn that Kafka takes."""

    breaks: frozenset[str]
    """The promises that are not kept then, and no others."""
    finding: str
    """The heading in the findings."""


PERMITTED: Mapping[str, Known] = {
    "kip320:hw-epoch": Known(
        frozenset({invariants.LEADER_CANDIDATE_COMPLETENESS}),
        "A leader that missed a leader in between commits what a member of the ISR has truncated",
    ),
}
"""By the names of the counterexamples."""


def is_permitted(name: str, broken: Iterable[str]) -> bool:
    """Whether a counterexample breaks what it is known to break, and nothing else."""
    known = PERMITTED.get(name)
    return known is not None and frozenset(broken) == known.breaks


def finding(name: str) -> str | None:
    """Where it is written down that Kafka takes a bad turn."""
    known = PERMITTED.get(name)
    return None if known is None else f"{FINDINGS}: {known.finding}"
