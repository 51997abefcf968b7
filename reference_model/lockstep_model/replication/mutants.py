"""Guards of Kafka's replication protocol that a mutant of the model drops, by name.

A rule checks its guard with `parameters.guards(NAME)`. A mutant without the guard breaks an invariant of the controller
or of the replicas; where another guard prevents the same, its docstring says so. "Published" marks the ten guards that
the TLA+ specification of Vanlightly (v3.5) marks as needed. One of them has no counterpart here: the reset of the fetch
position in a new leader epoch, because a follower of this model always fetches from its log end offset.
"""

from __future__ import annotations

# Guards of the controller

ELECT_IN_SYNC = "elect-in-sync"
"""The controller elects only ISR members, unless unclean election is enabled."""
LAST_MEMBER_STAYS = "last-member-stays"
"""Without ELR the last ISR member stays in the ISR. Without this guard no replica could be elected cleanly."""
BROKER_EPOCH_OF_MEMBERS = "broker-epoch-of-members"
"""AlterPartition: the broker epoch of an ISR member is the registered one (KIP-903). Published."""
FENCED_CANNOT_JOIN = "fenced-cannot-join"
"""AlterPartition: a broker that is fenced or in controlled shutdown cannot join the ISR (KIP-841)."""
PARTITION_EPOCH_OF_ISR = "partition-epoch-of-isr"
"""AlterPartition with an old partition epoch gets INVALID_UPDATE_VERSION (KIP-497). Published. In ZooKeeper mode every
ISR change by the controller also raises the leader epoch, which alone refuses the request."""
EPOCH_OF_CHANGE = "epoch-of-change"
"""Every partition change raises the partition epoch (PartitionChangeBuilder). In ZooKeeper mode: the znode version."""
EPOCH_OF_LEADER = "epoch-of-leader"
"""Every leader change raises the leader epoch (PartitionChangeBuilder), in ZooKeeper mode too."""
ELR_BELOW_MINIMUM = "elr-below-minimum"
"""A replica that leaves the ISR joins the ELR only if the ISR is then below min.insync.replicas (KIP-966)."""
ELR_FORGETS_UNCLEAN = "elr-forgets-unclean"
"""A broker that registers after an unclean shutdown leaves the ELR (KIP-966)."""
LAST_KNOWN_LEADER_ACTIVE = "last-known-leader-active"
"""The last known leader is elected only if its broker is active (KAFKA-19522). Otherwise a dead broker would lead."""
NEW_INCARNATION = "new-incarnation"
"""A registration with a new incarnation id is refused while the previous session lasts, so that the controller sees the
crash. Published as: a broker ignores the response to a registration of an earlier incarnation."""

# Guards of the replicas

FETCH_LEADER_EPOCH = "fetch-leader-epoch"
"""A follower's Fetch has the leader's leader epoch (KIP-320; Partition.getLocalLog)."""
FETCH_BROKER_EPOCH = "fetch-broker-epoch"
"""A Fetch with the broker epoch of an earlier incarnation is refused (KIP-903; Replica.updateFetchStateOrThrow)."""
DIVERGENCE_CHECK = "divergence-check"
"""A Fetch whose lastFetchedEpoch does not match the leader's log gets a diverging epoch (KIP-595)."""
RESPONSE_OFFSET = "response-offset"
"""A Fetch response is applied only if its fetch offset is the follower's LEO. Published. Redundant while
RESPONSE_LEADER_EPOCH holds, because within one leader epoch only the fetcher changes the follower's log."""
EXPAND_REACHES_HIGH_WATERMARK = "expand-reaches-high-watermark"
"""A follower joins the ISR only if its LEO has reached the high watermark (Partition.isFollowerInSync). Published."""
EXPAND_REACHES_EPOCH_START = "expand-reaches-epoch-start"
"""A follower joins the ISR only if its LEO has reached the start of this leader epoch: records below that may be
committed above a new leader's high watermark (KAFKA-7128). Published."""
EXPAND_AFTER_FETCH = "expand-after-fetch"
"""A follower joins the ISR by a Fetch in this leader epoch, not by its state of an earlier one. Published twice: as a
follower whose LEO is unknown until it fetches, and as a reset in each epoch, which Kafka does not do."""
EXPAND_BROKER_EPOCH = "expand-broker-epoch"
"""The leader proposes a follower only with its registered broker epoch (KIP-903). Redundant: the controller checks it
too (BROKER_EPOCH_OF_MEMBERS), and that check is needed because the leader's metadata may be old."""
MAXIMAL_ISR = "maximal-isr"
"""The high watermark waits for the committed and the pending ISR (KIP-497; PartitionState.maximalIsr)."""
HIGH_WATERMARK_RISES = "high-watermark-rises"
"""A leader's high watermark never decreases, even if a follower's LEO does (Partition.maybeIncrementLeaderHW)."""
HIGH_WATERMARK_WITHIN_LOG = "high-watermark-within-log"
"""A follower's high watermark is at most its own LEO (UnifiedLog.updateHighWatermark)."""
ANSWER_WAITS = "answer-waits"
"""acks=all is answered when the high watermark has reached the end of the batch (DelayedProduce)."""
HIGH_WATERMARK_GATE = "high-watermark-gate"
"""The high watermark does not advance below min.insync.replicas (KIP-966)."""

RESPONSE_LEADER_EPOCH = "response-leader-epoch"
"""A Fetch response of an earlier leader epoch is ignored. Published, and in Kafka 3.9.2. A fetcher of 3.9.0 applied one
whose fetch offset matched if the same broker led again, two elections later."""
