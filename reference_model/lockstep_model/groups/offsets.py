"""Committed offsets of a group: OffsetCommit, TxnOffsetCommit, markers and OffsetFetch (OffsetMetadataManager)."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from lockstep_model.errors import Error
from lockstep_model.groups.classic import validate
from lockstep_model.groups.consumer import ConsumerGroup
from lockstep_model.groups.generations import (
    NO_GENERATION,
    UNKNOWN_MEMBER,
    ClassicGroup,
    GroupState,
    MemberId,
    Partition,
)
from lockstep_model.groups.mutants import (
    ABORT_DROPS_PENDING,
    ASSIGNMENT_EPOCH_OF_COMMIT,
    EPOCH_OF_COMMIT,
    GENERATION_OF_COMMIT,
    MEMBER_OF_COMMIT,
    NEWEST_RECORD_STAYS,
    PENDING_UNTIL_MARKER,
    SIMPLE_WHEN_EMPTY,
    UNSTABLE_WHILE_PENDING,
)
from lockstep_model.groups.parameters import GroupParameters
from lockstep_model.groups.reconciliation import ConsumerMember

Group: TypeAlias = ClassicGroup | ConsumerGroup
ProducerId: TypeAlias = int
NO_OFFSET = -1
FIRST_VERSION_OF_EPOCHS = 9
"""The first OffsetCommit version that members of the consumer protocol may use (KIP-848)."""


class OffsetCommit(NamedTuple):
    """OffsetCommit request, or TxnOffsetCommit if it has a producer."""

    offsets: tuple[tuple[Partition, int], ...]
    member: MemberId = UNKNOWN_MEMBER
    generation: int = NO_GENERATION
    """Or the member epoch; -1 without a member id is a simple consumer or an administrator."""
    instance: str | None = None
    producer: ProducerId | None = None
    version: int = FIRST_VERSION_OF_EPOCHS


class OffsetFetch(NamedTuple):
    partition: Partition
    require_stable: bool = False
    member: MemberId | None = None
    epoch: int = NO_GENERATION


class FetchedOffset(NamedTuple):
    error: Error
    offset: int = NO_OFFSET


class PendingOffset(NamedTuple):
    """A transactional offset before its marker (pendingTransactionalOffsets)."""

    producer: ProducerId
    partition: Partition
    offset: int
    outdated: bool = False
    """A later record has committed an offset for the same partition (OffsetAndMetadata.recordOffset)."""


class Offsets(NamedTuple):
    """Committed and pending offsets of one group."""

    committed: tuple[tuple[Partition, int], ...] = ()
    pending: tuple[PendingOffset, ...] = ()
    """In the order of their records."""

    def of(self, partition: Partition) -> int:
        return dict(self.committed).get(partition, NO_OFFSET)


class CommitResult(NamedTuple):
    """Result of a commit, which may have created the group."""

    group: Group | None
    offsets: Offsets
    error: Error


def commit(
    group: Group | None, offsets: Offsets, request: OffsetCommit, *, parameters: GroupParameters
) -> CommitResult:
    """OffsetCommit, TxnOffsetCommit: all offsets of a request are committed, or none.

    OffsetMetadataManager.commitOffset, commitTransactionalOffset.
    """
    error = _refused(group, request, parameters)
    if request.producer is not None and error is Error.STALE_MEMBER_EPOCH:  # TxnOffsetCommit has no member epoch error
        error = Error.ILLEGAL_GENERATION
    if error is not Error.NONE:
        return CommitResult(group, offsets, error)
    for partition, offset in request.offsets:
        if request.producer is None or not parameters.guards(PENDING_UNTIL_MARKER):
            offsets = _store(offsets, partition, offset)
        else:
            entry = PendingOffset(request.producer, partition, offset)
            others = tuple(one for one in offsets.pending if one[:2] != entry[:2])
            offsets = offsets._replace(pending=(*others, entry))
    return CommitResult(ClassicGroup() if group is None else group, offsets, Error.NONE)


def end_transaction(offsets: Offsets, producer: ProducerId, *, committed: bool, parameters: GroupParameters) -> Offsets:
    """A marker commits or drops the producer's pending offsets (OffsetMetadataManager.replayEndTransactionMarker)."""
    if not committed and not parameters.guards(ABORT_DROPS_PENDING):
        committed = True
    own = tuple(entry for entry in offsets.pending if entry.producer == producer)
    if committed:
        for entry in own:
            if not entry.outdated or not parameters.guards(NEWEST_RECORD_STAYS):
                offsets = _store(offsets, entry.partition, entry.offset, before=entry)
    return offsets._replace(pending=tuple(entry for entry in offsets.pending if entry.producer != producer))


def fetch(group: Group | None, offsets: Offsets, request: OffsetFetch, *, parameters: GroupParameters) -> FetchedOffset:
    """OffsetFetch of one partition (OffsetMetadataManager.fetchOffsets)."""
    if isinstance(group, ConsumerGroup) and request.member is not None:
        member = group.member(request.member)
        if member is None:
            return FetchedOffset(Error.UNKNOWN_MEMBER_ID)
        if request.epoch != member.epoch:
            return FetchedOffset(Error.STALE_MEMBER_EPOCH)
    pending = any(entry.partition == request.partition for entry in offsets.pending)
    if request.require_stable and pending and parameters.guards(UNSTABLE_WHILE_PENDING):  # KIP-447
        return FetchedOffset(Error.UNSTABLE_OFFSET_COMMIT)
    return FetchedOffset(Error.NONE, offsets.of(request.partition))


def _store(offsets: Offsets, partition: Partition, offset: int, before: PendingOffset | None = None) -> Offsets:
    """Commits an offset; pending offsets of earlier records for its partition become outdated."""
    earlier = offsets.pending[: offsets.pending.index(before)] if before in offsets.pending else offsets.pending
    later = offsets.pending[len(earlier) :]
    outdated = tuple(entry._replace(outdated=entry.outdated or entry.partition == partition) for entry in earlier)
    committed = tuple(sorted({**dict(offsets.committed), partition: offset}.items()))
    return Offsets(committed, outdated + later)


def _refused(group: Group | None, request: OffsetCommit, parameters: GroupParameters) -> Error:
    """The error of a commit, or NONE."""
    if group is None:
        return _refused_without_group(request, parameters)
    if isinstance(group, ClassicGroup):
        return _refused_by_classic(group, request, parameters)
    return _refused_by_consumer(group, request, parameters)


def _refused_without_group(request: OffsetCommit, parameters: GroupParameters) -> Error:
    """A commit without generation creates the group; with one, there is no such member.

    The old coordinator creates a group for every TxnOffsetCommit, and then misses the member in it
    (GroupCoordinator.handleCommitOffsets, handleTxnCommitOffsets).
    """
    if request.generation < 0:
        return Error.NONE
    if not parameters.new_coordinator:
        return Error.ILLEGAL_GENERATION if request.producer is None else Error.UNKNOWN_MEMBER_ID
    old = request.producer is not None or request.version < FIRST_VERSION_OF_EPOCHS
    return Error.ILLEGAL_GENERATION if old else Error.GROUP_ID_NOT_FOUND


def _anonymous(request: OffsetCommit) -> bool:
    return request.generation < 0 and request.member == UNKNOWN_MEMBER and request.instance is None


def _refused_by_classic(group: ClassicGroup, request: OffsetCommit, parameters: GroupParameters) -> Error:
    """Validation in a classic group; members of the last generation may commit while the next is prepared.

    ClassicGroup.validateOffsetCommit.
    """
    transactional = request.producer is not None
    if request.generation < 0 and group.state is GroupState.EMPTY:
        return Error.NONE
    if not _anonymous(request):
        error = validate(group, request.member, request.instance)
        if error is not Error.NONE and parameters.guards(MEMBER_OF_COMMIT):
            return error
        if request.generation != group.generation and parameters.guards(GENERATION_OF_COMMIT):
            return Error.ILLEGAL_GENERATION
    elif not transactional and parameters.guards(SIMPLE_WHEN_EMPTY):
        return Error.UNKNOWN_MEMBER_ID
    if not transactional and group.state is GroupState.COMPLETING_REBALANCE:
        return Error.REBALANCE_IN_PROGRESS
    return Error.NONE


def _refused_by_consumer(group: ConsumerGroup, request: OffsetCommit, parameters: GroupParameters) -> Error:
    """Validation in a consumer group (ConsumerGroup.validateOffsetCommit)."""
    transactional = request.producer is not None
    if request.generation < 0 and not group.members:
        return Error.NONE
    if _anonymous(request) and transactional and parameters.anonymous_transactions:
        return Error.NONE
    member = group.member(request.member)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID if parameters.guards(MEMBER_OF_COMMIT) else Error.NONE
    if not transactional and request.version < FIRST_VERSION_OF_EPOCHS:
        return Error.UNSUPPORTED_VERSION
    if request.generation == member.epoch or not parameters.guards(EPOCH_OF_COMMIT):
        return Error.NONE
    older = parameters.assignment_epochs and request.generation < member.epoch
    if older and all(
        _held_since(member, partition, request.generation, parameters) for partition, _ in request.offsets
    ):
        return Error.NONE
    return Error.STALE_MEMBER_EPOCH


def _held_since(member: ConsumerMember, partition: Partition, epoch: int, parameters: GroupParameters) -> bool:
    """Whether the member has had this partition since that member epoch (createAssignmentEpochValidator, KIP-1251)."""
    since = dict(member.revoking | member.assigned).get(partition)
    if not parameters.guards(ASSIGNMENT_EPOCH_OF_COMMIT):
        return True
    return since is not None and since <= epoch
