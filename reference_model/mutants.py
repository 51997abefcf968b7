"""The guards of replication that a mutant can do without, by name.

Each is asked for where it stands (`parameters.guards(NAME)`), and each has a trace to what goes wrong without it.
"""

from __future__ import annotations

# Of the controller
BROKER_EPOCH_OF_MEMBERS = "broker-epoch-of-members"
FENCED_CANNOT_JOIN = "fenced-cannot-join"
PARTITION_EPOCH_OF_ISR = "partition-epoch-of-isr"
ELECT_IN_SYNC = "elect-in-sync"
LAST_MEMBER_STAYS = "last-member-stays"
ELR_FORGETS_UNCLEAN = "elr-forgets-unclean"
LAST_KNOWN_LEADER_ACTIVE = "last-known-leader-active"

NEW_INCARNATION = "new-incarnation"

# Of the replicas
FETCH_LEADER_EPOCH = "fetch-leader-epoch"
FETCH_BROKER_EPOCH = "fetch-broker-epoch"
DIVERGENCE_CHECK = "divergence-check"
RESPONSE_OFFSET = "response-offset"
EXPAND_REACHES_HIGH_WATERMARK = "expand-reaches-high-watermark"
EXPAND_REACHES_EPOCH_START = "expand-reaches-epoch-start"
EXPAND_BROKER_EPOCH = "expand-broker-epoch"
EXPAND_AFTER_FETCH = "expand-after-fetch"
MAXIMAL_ISR = "maximal-isr"
HIGH_WATERMARK_GATE = "high-watermark-gate"

# Of the published specification, which Kafka does without
RESPONSE_LEADER_EPOCH = "response-leader-epoch"
PENDING_OUTLIVES_KNOWN_METADATA = "pending-outlives-known-metadata"
