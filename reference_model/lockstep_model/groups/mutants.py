"""Guards of group coordination that a mutant of the model drops, by name.

A rule checks its guard with `parameters.guards(NAME)`. Each mutant has a trace to the invariant that it breaks.
"""

from __future__ import annotations

# Classic protocol
JOIN_WAITS_FOR_MEMBERS = "join-waits-for-members"
"""A generation begins when all members have joined, or by timeout (ClassicGroup.hasAllMembersJoined)."""
GENERATION_OF_HEARTBEAT = "generation-of-heartbeat"
"""A Heartbeat of another generation gets ILLEGAL_GENERATION."""
NEW_ID_FOR_INSTANCE = "new-id-for-instance"
"""A static member that rejoins gets a new member id, which fences the old one (KIP-345)."""

# Consumer protocol
REVOKE_BEFORE_ADVANCE = "revoke-before-advance"
"""The member epoch rises only after the member has revoked its partitions (CurrentAssignmentBuilder)."""
RELEASE_BEFORE_ASSIGN = "release-before-assign"
"""A partition is assigned only after its previous owner released it (currentPartitionEpoch)."""
EPOCH_OF_HEARTBEAT = "epoch-of-heartbeat"
"""A heartbeat of another member epoch gets FENCED_MEMBER_EPOCH."""
INSTANCE_RELEASED = "instance-released"
"""A group instance id in use is refused with UNRELEASED_INSTANCE_ID."""

# Committed offsets
MEMBER_OF_COMMIT = "member-of-commit"
"""OffsetCommit of an unknown member gets UNKNOWN_MEMBER_ID."""
GENERATION_OF_COMMIT = "generation-of-commit"
"""OffsetCommit of another generation gets ILLEGAL_GENERATION."""
SIMPLE_WHEN_EMPTY = "simple-when-empty"
"""OffsetCommit without a member is accepted only by an empty group."""
EPOCH_OF_COMMIT = "epoch-of-commit"
"""OffsetCommit with another member epoch gets STALE_MEMBER_EPOCH."""
ASSIGNMENT_EPOCH_OF_COMMIT = "assignment-epoch-of-commit"
"""An older member epoch is accepted only if the partition was assigned by then (KIP-1251)."""
PENDING_UNTIL_MARKER = "pending-until-marker"
"""Transactional offsets are not committed before their marker."""
UNSTABLE_WHILE_PENDING = "unstable-while-pending"
"""OffsetFetch with requireStable gets UNSTABLE_OFFSET_COMMIT while offsets are pending (KIP-447)."""
ABORT_DROPS_PENDING = "abort-drops-pending"
"""An abort marker drops the pending offsets."""
NEWEST_RECORD_STAYS = "newest-record-stays"
"""A marker does not overwrite an offset whose record is later than the pending one's."""
