"""The guards of groups that a mutant can do without, by name.

Each is asked for where it stands (`parameters.guards(NAME)`), and each has a trace to what goes wrong without it.
"""

from __future__ import annotations

# Of the classic protocol
JOIN_WAITS_FOR_MEMBERS = "join-waits-for-members"
GENERATION_OF_HEARTBEAT = "generation-of-heartbeat"
NEW_ID_FOR_INSTANCE = "new-id-for-instance"

# Of the consumer protocol
REVOKE_BEFORE_ADVANCE = "revoke-before-advance"
RELEASE_BEFORE_ASSIGN = "release-before-assign"
EPOCH_OF_HEARTBEAT = "epoch-of-heartbeat"
INSTANCE_RELEASED = "instance-released"

# Of committed offsets
MEMBER_OF_COMMIT = "member-of-commit"
GENERATION_OF_COMMIT = "generation-of-commit"
SIMPLE_WHEN_EMPTY = "simple-when-empty"
EPOCH_OF_COMMIT = "epoch-of-commit"
ASSIGNMENT_EPOCH_OF_COMMIT = "assignment-epoch-of-commit"
PENDING_UNTIL_MARKER = "pending-until-marker"
UNSTABLE_WHILE_PENDING = "unstable-while-pending"
ABORT_DROPS_PENDING = "abort-drops-pending"
NEWEST_RECORD_STAYS = "newest-record-stays"
