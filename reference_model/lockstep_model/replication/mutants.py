"""The guards of replication that a mutant can do without, by name.

Each is asked for where it stands (`parameters.guards(NAME)`). Without it something goes wrong that an invariant sees,
in the controller alone or with its replicas; where another guard would catch the same, that is said here. They include
the ten that the published specification marks as needed (Vanlightly, v3.5). One of those has nothing to stand for it: a
fetcher that begins anew with every leader epoch has no position of its own here, for what it fetches is always what
comes after the end of its log.
"""

from __future__ import annotations

# Of the controller

ELECT_IN_SYNC = "elect-in-sync"
"""Only members of the ISR are elected, unless that is allowed to be unclean."""
LAST_MEMBER_STAYS = "last-member-stays"
"""Without eligible leader replicas the last member of the ISR stays. What is lost is that somebody may lead."""
BROKER_EPOCH_OF_MEMBERS = "broker-epoch-of-members"
"""Who joins the ISR is the process that the leader saw catch up (KIP-903). Published."""
FENCED_CANNOT_JOIN = "fenced-cannot-join"
"""Who is fenced or shuts down joins no ISR (KIP-841)."""
PARTITION_EPOCH_OF_ISR = "partition-epoch-of-isr"
"""A leader that does not know the newest ISR does not change it. Published. In ZooKeeper mode all that the controller
does to the ISR raises the leader epoch too, and that alone refuses the leader."""
EPOCH_OF_CHANGE = "epoch-of-change"
"""Every change of a partition has its own partition epoch. In ZooKeeper mode it is the znode's version."""
EPOCH_OF_LEADER = "epoch-of-leader"
"""Every leader has its own leader epoch. The same holds of ZooKeeper's."""
ELR_BELOW_MINIMUM = "elr-below-minimum"
"""Who leaves an ISR that is large enough to commit without it is not eligible (KIP-966)."""
ELR_FORGETS_UNCLEAN = "elr-forgets-unclean"
"""Who comes back from an unclean end is no longer eligible (KIP-966)."""
LAST_KNOWN_LEADER_ACTIVE = "last-known-leader-active"
"""The last known leader leads again if it is there (KAFKA-19522). What is lost is a leader that is there."""
NEW_INCARNATION = "new-incarnation"
"""Another process with the id of one whose session lasts is refused, so that a crash is seen. Published: a broker takes
no registration for its own that an earlier process asked for."""

# Of the replicas

FETCH_LEADER_EPOCH = "fetch-leader-epoch"
"""Who fetches and who answers know the same leader epoch (KIP-320)."""
FETCH_BROKER_EPOCH = "fetch-broker-epoch"
"""What a follower sent before it restarted does not count (KIP-903)."""
DIVERGENCE_CHECK = "divergence-check"
"""A follower whose log is another one is told so (KIP-595)."""
RESPONSE_OFFSET = "response-offset"
"""An answer is appended where it was asked for. Published. Here, where a follower also compares leader epochs, nothing
comes between: within one epoch nobody but its fetcher changes the log. Where it does not, it needs this one."""
EXPAND_REACHES_HIGH_WATERMARK = "expand-reaches-high-watermark"
"""Who joins the ISR has all that was committed. Published."""
EXPAND_REACHES_EPOCH_START = "expand-reaches-epoch-start"
"""And all that was before this epoch, of which more may be committed than the leader knows (KAFKA-7128). Published."""
EXPAND_AFTER_FETCH = "expand-after-fetch"
"""A follower joins the ISR by a fetch of this epoch, not by what was known of it before. Published twice: as a follower
that is unknown until it fetches, and as one that is forgotten with the epoch, which Kafka does not do."""
EXPAND_BROKER_EPOCH = "expand-broker-epoch"
"""A leader does not even ask for another process than the one that is registered (KIP-903). Nothing is lost without it,
for the controller looks too: BROKER_EPOCH_OF_MEMBERS, which is needed because the leader may not know yet."""
MAXIMAL_ISR = "maximal-isr"
"""The high watermark waits for whom the leader has asked for, and for whom it has asked to remove (KIP-497)."""
HIGH_WATERMARK_RISES = "high-watermark-rises"
"""A leader's high watermark never goes back, not even for a follower that lost the end of its log."""
HIGH_WATERMARK_WITHIN_LOG = "high-watermark-within-log"
"""A follower takes its leader's high watermark no further than its own log goes."""
ANSWER_WAITS = "answer-waits"
"""Who produced with acks=all is answered when the high watermark has reached the end of what was appended."""
HIGH_WATERMARK_GATE = "high-watermark-gate"
"""Nothing is committed below min.insync.replicas (KIP-966)."""

RESPONSE_LEADER_EPOCH = "response-leader-epoch"
"""An answer of an earlier epoch is ignored. Published, and in Kafka 3.9.2: in 3.9.0 a fetcher took one whose offset
still fits, if the same broker leads again; it would have to wait for that through two elections."""
