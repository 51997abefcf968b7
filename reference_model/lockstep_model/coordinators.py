"""Coordinator errors of a broker, for groups and transactional ids: not coordinator, loading, not available.

The coordinator is the leader of the id's partition of __consumer_offsets or __transaction_state, once it has loaded
that partition. After one of these errors a client looks up the coordinator again, or backs off, and retries. The failed
request may still take effect: a record that was appended and not acknowledged can be committed later.
"""

from __future__ import annotations

from enum import StrEnum

from lockstep_model.errors import Error


class CoordinatorState(StrEnum):
    """The state of a broker as coordinator of one group or transactional id."""

    ACTIVE = "active"
    LOADING = "loading"
    ELSEWHERE = "elsewhere"
    """By its own metadata the broker does not lead the id's partition."""
    STOPPED = "stopped"
    """The coordinator of this broker is starting or shutting down."""


_REFUSALS = {
    CoordinatorState.ACTIVE: Error.NONE,
    CoordinatorState.LOADING: Error.COORDINATOR_LOAD_IN_PROGRESS,
    CoordinatorState.ELSEWHERE: Error.NOT_COORDINATOR,
    CoordinatorState.STOPPED: Error.COORDINATOR_NOT_AVAILABLE,
}


def refusal(coordinating: CoordinatorState) -> Error:
    """Error of a broker in this coordinator state, NONE if it is active.

    TransactionStateManager.getAndMaybeAddTransactionState, GroupCoordinator.validateGroupStatus,
    CoordinatorRuntime.withActiveContextOrThrow.
    """
    return _REFUSALS[coordinating]


def heartbeat_refusal(coordinating: CoordinatorState) -> Error:
    """Classic Heartbeat: a coordinator that is loading the group answers NONE (GroupCoordinator.handleHeartbeat)."""
    return Error.NONE if coordinating is CoordinatorState.LOADING else refusal(coordinating)


def sync_refusal(coordinating: CoordinatorState, *, new_coordinator: bool) -> Error:
    """Classic SyncGroup: while loading the old coordinator answers REBALANCE_IN_PROGRESS, so that members rejoin.

    GroupCoordinator.handleSyncGroup; the rebalance in progress was lost with the previous coordinator.
    """
    if coordinating is CoordinatorState.LOADING and not new_coordinator:
        return Error.REBALANCE_IN_PROGRESS
    return refusal(coordinating)


def write_error(error: Error) -> Error:
    """Client error for a failed append of the coordinator's own record (to __consumer_offsets or __transaction_state).

    NETWORK_EXCEPTION: the group coordinator could not reach the transaction coordinator for verification.
    TransactionStateManager.appendTransactionToLog, CoordinatorOperationExceptionHelper.handleOperationException.
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
