"""Replicas of one partition, made and moved in one line each: broker 0 leads, 1 and 2 follow."""

from __future__ import annotations

from lockstep_model.parameters import Mode, Parameters
from lockstep_model.partition.log import Log, Record
from lockstep_model.partition.replica import BrokerRegistrations, Leadership, Progress, Replica, learn
from lockstep_model.partition.replica_fetch import ReplicaFetchResponse, answer, request, take
from lockstep_model.registration import BrokerRegistration, Registration

KRAFT = Parameters(elr=False, min_isr=1)
ZK = Parameters(mode=Mode.ZK, elr=False, epoch_bump_on_isr_shrink=True, min_isr=1)
BROKERS: BrokerRegistrations = tuple((broker, BrokerRegistration(epoch=10 * broker)) for broker in range(3))


def log(*epochs: int) -> Log:
    """A log with a record of each of these epochs; equal offsets and epochs have equal values."""
    return Log().append(Record(epoch, value=100 * epoch + offset) for offset, epoch in enumerate(epochs))


def partition(isr: str = "012", *, leader: int = 0, epoch: int = 0, version: int = 0) -> Registration:
    return Registration(
        replicas=(0, 1, 2),
        isr=frozenset(map(int, isr)),
        leader=leader,
        leader_epoch=epoch,
        partition_epoch=version,
    )


def replica(
    broker: int,
    known: Registration | None = None,
    *,
    has: Log | None = None,
    high_watermark: int = 0,
    parameters: Parameters = KRAFT,
) -> Replica:
    """A replica that knows this registration."""
    blank = Replica(broker, 10 * broker, log=has or Log(), high_watermark=high_watermark)
    return learn(parameters, blank, known or partition(), BROKERS)


def fetching(
    leader: Replica, follower: Replica, parameters: Parameters = KRAFT
) -> tuple[Replica, ReplicaFetchResponse]:
    """The follower asks the leader for all there is."""
    fetch = request(follower)
    assert fetch is not None
    return answer(parameters, leader, fetch)


def exchange(leader: Replica, follower: Replica, parameters: Parameters = KRAFT) -> tuple[Replica, Replica]:
    """The follower fetches, and takes the answer."""
    leader, fetched = fetching(leader, follower, parameters)
    return leader, take(parameters, follower, fetched)


def leading(replica: Replica) -> Leadership:
    assert replica.leadership is not None
    return replica.leadership


def progress(leader: Replica, follower: int) -> Progress:
    known = leading(leader).of(follower)
    assert known is not None
    return known
