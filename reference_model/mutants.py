"""The guards of replication that a mutant can do without, by name.

Each is asked for where it stands (`parameters.guards(NAME)`), and each has a trace to what goes wrong without it.
"""

from __future__ import annotations

# Of the controller
ELECT_IN_SYNC = "elect-in-sync"
LAST_MEMBER_STAYS = "last-member-stays"
ELR_FORGETS_UNCLEAN = "elr-forgets-unclean"
LAST_KNOWN_LEADER_ACTIVE = "last-known-leader-active"

# Of the replicas
FETCH_LEADER_EPOCH = "fetch-leader-epoch"
FETCH_BROKER_EPOCH = "fetch-broker-epoch"
DIVERGENCE_CHECK = "divergence-check"
FETCH_OFFSET_MATCH = "fetch-offset-match"
RESPONSE_LEADER_EPOCH = "response-leader-epoch"
EXPAND_REACHES_HIGH_WATERMARK = "expand-reaches-high-watermark"
EXPAND_REACHES_EPOCH_START = "expand-reaches-epoch-start"
EXPAND_AFTER_FETCH = "expand-after-fetch"
MAXIMAL_ISR = "maximal-isr"
RESET_FOLLOWERS = "reset-followers"
