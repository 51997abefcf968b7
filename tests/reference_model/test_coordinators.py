"""What a broker answers that is not the coordinator, or cannot keep what it decides."""

from __future__ import annotations

import pytest

from lockstep_model.coordinators import CoordinatorState, heartbeat_refusal, refusal, sync_refusal, write_error
from lockstep_model.errors import Error


@pytest.mark.parametrize(
    ("coordinating", "error", "heartbeat", "old_sync"),
    [
        (CoordinatorState.ACTIVE, Error.NONE, Error.NONE, Error.NONE),
        (CoordinatorState.LOADING, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NONE, Error.REBALANCE_IN_PROGRESS),
        (CoordinatorState.ELSEWHERE, Error.NOT_COORDINATOR, Error.NOT_COORDINATOR, Error.NOT_COORDINATOR),
        (
            CoordinatorState.STOPPED,
            Error.COORDINATOR_NOT_AVAILABLE,
            Error.COORDINATOR_NOT_AVAILABLE,
            Error.COORDINATOR_NOT_AVAILABLE,
        ),
    ],
)
def test_refusals(coordinating: CoordinatorState, error: Error, heartbeat: Error, old_sync: Error) -> None:
    assert refusal(coordinating) is error
    assert heartbeat_refusal(coordinating) is heartbeat
    assert sync_refusal(coordinating, new_coordinator=False) is old_sync
    assert sync_refusal(coordinating, new_coordinator=True) is error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Error.NONE, Error.NONE),
        (Error.NOT_LEADER_OR_FOLLOWER, Error.NOT_COORDINATOR),
        (Error.KAFKA_STORAGE_ERROR, Error.NOT_COORDINATOR),
        (Error.NOT_ENOUGH_REPLICAS, Error.COORDINATOR_NOT_AVAILABLE),
        (Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND, Error.COORDINATOR_NOT_AVAILABLE),
        (Error.REQUEST_TIMED_OUT, Error.COORDINATOR_NOT_AVAILABLE),
        (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.COORDINATOR_NOT_AVAILABLE),
        (Error.NETWORK_EXCEPTION, Error.COORDINATOR_LOAD_IN_PROGRESS),
        (Error.INVALID_PRODUCER_EPOCH, Error.INVALID_PRODUCER_EPOCH),
        (Error.CONCURRENT_TRANSACTIONS, Error.CONCURRENT_TRANSACTIONS),
    ],
)
def test_what_is_told_when_its_record_is_refused(error: Error, told: Error) -> None:
    assert write_error(error) is told
