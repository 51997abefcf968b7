"""The claims that scripts are about: what our sources say of Kafka, and what is so.

Some sources are right, some are imprecise. A script shows the fact; reports show both.
"""

from __future__ import annotations

from typing import NamedTuple

ELECTION = "Leader election"
REPLICATION = "Replication and ISR"
RECOVERY = "Leader epochs and recovery"
PRODUCE = "Produce and acks"


class Claim(NamedTuple):
    """One claim about Kafka's behaviour."""

    family: str
    wording: str
    """As it is commonly put."""
    fact: str
    """What is so, in every version and mode unless it says otherwise."""


CATALOGUE: dict[int, Claim] = {
    12: Claim(
        ELECTION,
        "When a broker fails, the controller picks the next replica in the list for each partition that it led.",
        "It picks the first replica in the order of the assignment that is alive and in the ISR.",
    ),
    19: Claim(
        ELECTION,
        "A partition's leader is elected from the ISR only.",
        "Unless an unclean election is asked for or configured. With eligible leader replicas (4.1 and later by "
        "default) one of these leads when the ISR is empty, and the last known leader when both are.",
    ),
    34: Claim(
        REPLICATION,
        "All writes go to the leader.",
        "Other replicas refuse them with NOT_LEADER_OR_FOLLOWER, and close the connection of a producer with acks=0.",
    ),
    37: Claim(
        REPLICATION,
        "The leader learns from the fetch offset how far a follower has come: who asks for n has all up to n-1.",
        "So it is; there is no other acknowledgement.",
    ),
    40: Claim(
        REPLICATION,
        "The high watermark is the offset of the last committed record.",
        "It is the offset after that one, and it is as far as all of the ISR have come.",
    ),
    41: Claim(
        REPLICATION,
        "Only records below the high watermark can be read; above it the answer is empty.",
        "Up to the end of the log it is, without an error; beyond the end it is OFFSET_OUT_OF_RANGE.",
    ),
    44: Claim(
        REPLICATION,
        "A follower is out of sync that has not fetched, or not been at the log's end, for the lag time.",
        "Being at the log's end is what counts, so nobody falls behind where nothing is written. The leader looks "
        "every half of the lag time.",
    ),
    45: Claim(
        REPLICATION,
        "A follower that has recovered is in the ISR again.",
        "When it has come to the high watermark and to the start of the leader's epoch; in KRaft mode it must not be "
        "fenced or shutting down either.",
    ),
    49: Claim(
        REPLICATION,
        "With three replicas two brokers may die at once.",
        "What was committed is kept. With min.insync.replicas=2, acks=all is refused then; from 3.7 on the high "
        "watermark stands still, so that acks=1 is taken, but not readable.",
    ),
    51: Claim(
        RECOVERY,
        "Leader epochs keep logs consistent in recovery.",
        "A replica that comes back cuts its log off where the leader's log has other epochs, by the answers to its "
        "fetches.",
    ),
    66: Claim(
        PRODUCE,
        "acks=1 is answered after the leader has appended the record.",
        "To its log, which need not be on its disk, and no follower need have it.",
    ),
    67: Claim(
        PRODUCE,
        "acks=all is answered when all of the ISR have the record.",
        "When the high watermark is past it, and the ISR is as large as min.insync.replicas asks for.",
    ),
    68: Claim(
        PRODUCE,
        "min.insync.replicas=2 and acks=all guarantee two copies.",
        "They do; but from 3.7 on min.insync.replicas counts for no more than there are replicas.",
    ),
    69: Claim(
        PRODUCE,
        "A write is checked for permission, valid acks and enough in-sync replicas.",
        "INVALID_REQUIRED_ACKS for other acks than -1, 0 and 1, and NOT_ENOUGH_REPLICAS before anything is appended.",
    ),
}
