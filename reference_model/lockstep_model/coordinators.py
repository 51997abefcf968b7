"""A broker is asked as the coordinator of a group or of a transactional id: whether it is, and can write what it must.

The coordinator is the leader of the id's partition of __consumer_offsets or __transaction_state, once it has read it.
Who is answered with one of these three errors finds the coordinator anew, or waits, and asks again. What it asked for
may have been done all the same: a record that is not acknowledged can be in the log.
"""

from __future__ import annotations

from enum import StrEnum

from lockstep_model.errors import Error


class Coordinating(StrEnum):
    """How a broker stands to an id."""

    ACTIVE = "active"
    LOADING = "loading"
    ELSEWHERE = "elsewhere"
    """It does not lead the partition, for all that it knows."""
    STOPPED = "stopped"
    """It is starting, or shutting down."""


_REFUSALS = {
    Coordinating.ACTIVE: Error.NONE,
    Coordinating.LOADING: Error.COORDINATOR_LOAD_IN_PROGRESS,
    Coordinating.ELSEWHERE: Error.NOT_COORDINATOR,
    Coordinating.STOPPED: Error.COORDINATOR_NOT_AVAILABLE,
}


def refusal(coordinating: Coordinating) -> Error:
    """What is answered instead of an answer (TransactionStateManager.getAndMaybeAddTransactionState,
    GroupCoordinator.validateGroupStatus, CoordinatorRuntime.withActiveContextOrThrow)."""
    return _REFUSALS[coordinating]


def heartbeat_refusal(coordinating: Coordinating) -> Error:
    """To a heartbeat of the classic protocol: while the group is loaded nobody is sent away (handleHeartbeat)."""
    return Error.NONE if coordinating is Coordinating.LOADING else refusal(coordinating)


def sync_refusal(coordinating: Coordinating, *, new_coordinator: bool) -> Error:
    """To a SyncGroup: the old coordinator has members join again, as the rebalance is lost (handleSyncGroup)."""
    if coordinating is Coordinating.LOADING and not new_coordinator:
        return Error.REBALANCE_IN_PROGRESS
    return refusal(coordinating)


def write_error(error: Error) -> Error:
    """What is answered when a coordinator's own record was refused, or not replicated in time, with this error.

    A group coordinator whose broker cannot reach the transaction coordinator has clients wait as if it were loading.
    TransactionStateManager.appendTransactionToLog, CoordinatorOperationExceptionHelper.handleOperationException
    """
    if error in (Error.NOT_LEADER_OR_FOLLOWER, Error.KAFKA_STORAGE_ERROR):
        return Error.NOT_COORDINATOR
    if error is Error.NETWORK_EXCEPTION:
        return Error.COORDINATOR_LOAD_IN_PROGRESS
    if error in _UNWRITTEN:
        return Error.COORDINATOR_NOT_AVAILABLE
    return error


_UNWRITTEN = frozenset(
    {
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.NOT_ENOUGH_REPLICAS,
        Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Error.REQUEST_TIMED_OUT,
    }
)
