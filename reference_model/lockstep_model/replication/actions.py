"""Effects of the replication steps: each checks its guard, then changes the parts that it reads.

The part of a guard that depends on the first part alone is in `machine`, beside the step's name.
"""

from __future__ import annotations

from collections.abc import Iterator

from lockstep_model.controller import alter_partition, elect_preferred, fence, register, shut_down, unfence
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.partition.in_sync import (
    AWAITING_METADATA,
    asked_for,
    expand,
    lag_passes,
    rolled_back,
    sent_again,
    settle,
    shrink,
)
from lockstep_model.partition.produce import Acks, DelayedProduce, Produce, Produced, complete, produce
from lockstep_model.partition.replica import Replica, learn, restart
from lockstep_model.partition.replica_fetch import ReplicaFetch, ReplicaFetchResponse, answer, request, take
from lockstep_model.registration import AlterPartition, BrokerId, Register
from lockstep_model.replication import mutants
from lockstep_model.replication.state import (
    AlterPartitionResponse,
    Bounds,
    Broker,
    InFlightAlterPartition,
    InFlightFetch,
    Metadata,
    SpentBounds,
    Witness,
    decided,
    knowing,
    next_known,
    timeless,
)


class Steps:
    """The replication steps, within these bounds."""

    def __init__(self, parameters: Parameters, bounds: Bounds) -> None:
        self.parameters = parameters
        self.bounds = bounds

    # Controller

    def session_ends(
        self, b: BrokerId, metadata: Metadata, spent: SpentBounds
    ) -> Iterator[tuple[Metadata, SpentBounds]]:
        """A broker's session expires, and the controller fences it; the process may still run.

        ReplicationControlManager.handleBrokerFenced; in ZooKeeper mode KafkaController.onBrokerFailure.
        """
        running = metadata.known[b] is not None
        if running and spent.fencings >= self.bounds.fencings:
            return
        after = decided(self.bounds, metadata, fence(self.parameters, metadata.controller, b))
        if after is not None:
            yield after, spent._replace(fencings=spent.fencings + running)

    def is_heard_again(self, b: BrokerId, metadata: Metadata, broker: Broker) -> Iterator[tuple[Metadata, Broker]]:
        """A running broker is heard again and unfenced; in ZooKeeper mode it registers in a new session.

        A KRaft broker in controlled shutdown is not unfenced but told to stop
        (BrokerHeartbeatManager.calculateNextBrokerState).
        """
        if self.parameters.mode is Mode.ZK:
            epoch = _next_epoch(metadata)
            controller, _ = register(self.parameters, metadata.controller, Register(b, epoch))
            broker = broker._replace(replica=broker.replica._replace(broker_epoch=epoch))
        elif broker.leaving:
            return
        else:
            controller = unfence(self.parameters, metadata.controller, b)
        after = decided(self.bounds, metadata, controller)
        if after is not None:
            yield after, broker

    def alters(self, asked: AlterPartition, metadata: Metadata) -> Iterator[tuple[InFlightAlterPartition, Metadata]]:
        """The controller handles an AlterPartition; a leader retries after a retriable error (KIP-497).

        ReplicationControlManager.alterPartition.
        """
        controller, error = alter_partition(self.parameters, metadata.controller, asked)
        after = decided(self.bounds, metadata, controller)
        if after is None or sent_again(error):
            return
        if error in AWAITING_METADATA:  # the leader stays pending until a metadata update, with or without the response
            yield None, after
        else:
            yield AlterPartitionResponse(asked, controller.partition if error is Error.NONE else error), after

    def preferred_leader_is_elected(
        self, metadata: Metadata, spent: SpentBounds
    ) -> Iterator[tuple[Metadata, SpentBounds]]:
        """Preferred leader election: by ElectLeaders (KIP-460), or by the controller's leader rebalance."""
        if spent.preferred_elections >= self.bounds.preferred_elections:
            return
        controller, error = elect_preferred(self.parameters, metadata.controller)
        after = decided(self.bounds, metadata, controller)
        if after is not None and error is Error.NONE:
            yield after, spent._replace(preferred_elections=spent.preferred_elections + 1)

    # Brokers

    def learns(
        self, b: BrokerId, metadata: Metadata, broker: Broker, witness: Witness
    ) -> Iterator[tuple[Metadata, Broker, Witness]]:
        """A broker applies partition metadata; a smaller ISR may advance the leader's high watermark.

        Partition.makeLeader, Partition.makeFollower.
        """
        for position in next_known(self.parameters, self.bounds, metadata, b):
            new = metadata.log[position]
            replica = timeless(learn(self.parameters, broker.replica, new.partition, new.brokers))
            yield (knowing(metadata, b, position), *self.seen(broker._replace(replica=replica), witness))

    def is_written_to(
        self, broker: Broker, spent: SpentBounds, witness: Witness
    ) -> Iterator[tuple[Broker, SpentBounds, Witness]]:
        """A leader appends a record: acks=all if the ISR allows it, otherwise acks=1 (Partition.appendRecordsToLeader).

        The log is the same for both, so acks=1 alone would reach no other state.
        """
        if spent.records >= self.bounds.records:
            return
        value = spent.records
        replica, reply = produce(self.parameters, broker.replica, Produce(Acks.ALL, (value,)))
        if reply == Produced(Error.NOT_ENOUGH_REPLICAS):
            replica, reply = produce(self.parameters, broker.replica, Produce(Acks.LEADER, (value,)))
        elif reply == Produced(Error.NONE, broker.replica.log.end):
            witness = witness._replace(acknowledged=witness.acknowledged | {value})
        waiting = ((value, reply),) if isinstance(reply, DelayedProduce) else ()
        written, seen = self.seen(broker._replace(replica=replica), witness)
        yield written._replace(waiting=(*written.waiting, *waiting)), spent._replace(records=value + 1), seen

    def lag_time_passes(
        self, lagging: tuple[BrokerId, ...], broker: Broker, altering: InFlightAlterPartition
    ) -> Iterator[tuple[Broker, InFlightAlterPartition]]:
        """Followers have not caught up for replica.lag.time.max.ms (Partition.getOutOfSyncReplicas).

        If the leader can propose an ISR without them, it does so in the same step. An ISR member for which it cannot is
        the same as one that lags later.
        """
        replica = broker.replica
        for follower in lagging:
            after = lag_passes(replica, follower)
            if after == replica:
                return
            replica = after
        asked = list(self.asks_to_shrink(broker._replace(replica=replica), altering))
        if asked or not _in_isr(replica, lagging):
            yield from asked or [(broker._replace(replica=replica), altering)]

    def asks_to_shrink(
        self, broker: Broker, altering: InFlightAlterPartition
    ) -> Iterator[tuple[Broker, InFlightAlterPartition]]:
        """A leader proposes an ISR without lagging members, every half of the lag time (Partition.maybeShrinkIsr)."""
        if altering is not None or self.waits_for_metadata(broker):
            return
        replica = shrink(self.parameters, broker.replica)
        if replica != broker.replica:
            yield broker._replace(replica=replica), asked_for(replica)

    def waits_for_metadata(self, leader: Broker) -> bool:
        return self.bounds.prompt and leader.replica.leadership is not None and leader.replica.leadership.ahead

    def asks_unfetched(
        self, broker: Broker, altering: InFlightAlterPartition
    ) -> Iterator[tuple[Broker, InFlightAlterPartition]]:
        """Mutant only: a leader proposes a follower that has not fetched in this leader epoch."""
        if altering is not None or self.parameters.guards(mutants.EXPAND_AFTER_FETCH):
            return
        for follower in range(self.bounds.brokers):
            replica = expand(self.parameters, broker.replica, follower)
            if replica != broker.replica:
                yield broker._replace(replica=replica), asked_for(replica)

    def settles(
        self, answered: AlterPartitionResponse, broker: Broker, witness: Witness
    ) -> Iterator[tuple[InFlightAlterPartition, Broker, Witness]]:
        """A leader handles the AlterPartition response (Partition.submitAlterPartition)."""
        if _of_this_incarnation(broker, answered.request):
            replica = settle(self.parameters, broker.replica, answered.request, answered.answer)
            yield (None, *self.seen(broker._replace(replica=replica), witness))

    def altering_is_lost(
        self, altering: AlterPartition | AlterPartitionResponse, broker: Broker
    ) -> Iterator[tuple[InFlightAlterPartition, Broker]]:
        """A lost AlterPartition response: the request is retried; one of an earlier incarnation is lost for good."""
        asked = altering.request if isinstance(altering, AlterPartitionResponse) else altering
        yield (asked if _of_this_incarnation(broker, asked) else None), broker

    def seen(self, broker: Broker, witness: Witness) -> tuple[Broker, Witness]:
        """Records below a leader's high watermark become readable, and delayed acks=all responses complete.

        DelayedProduce.tryComplete.
        """
        replica, before = broker.replica, len(witness.committed)
        if replica.leadership is not None and replica.high_watermark > before:
            news = tuple(record.value for record in replica.log.read(before, replica.high_watermark))
            witness = witness._replace(committed=(*witness.committed, *news))
        for value, waiting in broker.waiting:
            reply = complete(self.parameters, replica, waiting)
            if reply is not None:
                broker = broker._replace(waiting=tuple(other for other in broker.waiting if other[0] != value))
            if reply is not None and reply.error is Error.NONE:
                witness = witness._replace(acknowledged=witness.acknowledged | {value})
        return broker, witness

    # Fetchers

    def fetches(
        self,
        to: BrokerId,
        follower: Broker,
        fetching: InFlightFetch,
        leader: Broker,
        altering: InFlightAlterPartition,
        witness: Witness,
    ) -> Iterator[tuple[Broker, InFlightFetch, Broker, InFlightAlterPartition, Witness]]:
        """A follower fetches from its leader; request, response and append are one step.

        Not while another fetch of this incarnation is in flight. One of an earlier incarnation may arrive later.
        """
        fetch = fetch_to(follower, to)
        if fetch is None or _waits(follower, fetching):
            return
        for answered, led, asks, sees in self.answers(fetch, leader, altering, witness):
            for _, took in self.takes(answered, follower):
                yield took, fetching, led, asks, sees

    def sends_fetch(
        self, to: BrokerId, spent: SpentBounds, fetching: InFlightFetch, follower: Broker
    ) -> Iterator[tuple[SpentBounds, InFlightFetch, Broker]]:
        """A follower sends a Fetch whose response is delayed; one is in flight at a time."""
        fetch = fetch_to(follower, to)
        if fetching is None and fetch is not None:
            yield spent._replace(delays=spent.delays + 1), fetch, follower

    def answers(
        self, fetch: ReplicaFetch, broker: Broker, altering: InFlightAlterPartition, witness: Witness
    ) -> Iterator[tuple[ReplicaFetchResponse, Broker, InFlightAlterPartition, Witness]]:
        """A leader handles a follower's Fetch, one record at a time, and may propose to add it to the ISR.

        Partition.fetchRecords, Partition.updateFollowerFetchState. While an AlterPartition of a previous leadership is
        in flight no other is sent: OPERATION_NOT_ATTEMPTED.
        """
        if not broker.running:
            return
        replica, answered = answer(self.parameters, broker.replica, fetch, limit=1)
        replica = timeless(replica)
        if asked_for(replica) != asked_for(broker.replica):
            if altering is None and not self.waits_for_metadata(broker):
                altering = asked_for(replica)
            else:
                replica = rolled_back(replica)
        led, seen = self.seen(broker._replace(replica=replica), witness)
        yield answered, led, altering, seen

    def takes(self, fetched: ReplicaFetchResponse, broker: Broker) -> Iterator[tuple[InFlightFetch, Broker]]:
        """A follower applies a Fetch response: it appends or truncates (AbstractFetcherThread.processFetchRequest)."""
        if broker.running:
            yield None, broker._replace(replica=take(self.parameters, broker.replica, fetched))

    # Shutdown, crash and start of broker processes

    def asks_to_leave(
        self, b: BrokerId, spent: SpentBounds, broker: Broker, metadata: Metadata
    ) -> Iterator[tuple[SpentBounds, Broker, Metadata]]:
        """Controlled shutdown, first request or retry: the broker loses its leaderships and leaves the ISR.

        KRaft grants it when the broker leads nothing and all active brokers have applied that; then the broker is
        fenced.
        """
        if not broker.running or (not broker.leaving and spent.shutdowns >= self.bounds.shutdowns):
            return
        others_know = _all_know_of_leaving(metadata, b)
        epoch = broker.replica.broker_epoch
        controller, answered = shut_down(self.parameters, metadata.controller, b, epoch, others_know=others_know)
        after = decided(self.bounds, metadata, controller)
        if after is not None and answered.error is Error.NONE:
            yield spent._replace(shutdowns=spent.shutdowns + (not broker.leaving)), broker._replace(leaving=True), after

    def leaves(self, b: BrokerId, broker: Broker, metadata: Metadata) -> Iterator[tuple[Broker, Metadata]]:
        """A broker whose shutdown is granted flushes its log and exits; in ZooKeeper mode also after its last retry."""
        registered = metadata.controller.broker(b)
        if self.parameters.mode is Mode.KRAFT and (registered is None or not registered.fenced):
            return
        stopped = _stopped(broker, end=broker.replica.log.end, high_watermark=broker.replica.high_watermark)
        yield stopped._replace(clean=True), knowing(metadata, b, None)

    def is_killed(
        self, b: BrokerId, spent: SpentBounds, broker: Broker, metadata: Metadata
    ) -> Iterator[tuple[SpentBounds, Broker, Metadata]]:
        """A broker process is killed: the log stays, the high watermark is one that was checkpointed."""
        if not broker.running:
            return
        spent = spent._replace(kills=spent.kills + 1)
        for stopped in _crashed(broker, end=broker.replica.log.end):
            yield spent, stopped, knowing(metadata, b, None)

    def loses_power(
        self, b: BrokerId, spent: SpentBounds, broker: Broker, metadata: Metadata
    ) -> Iterator[tuple[SpentBounds, Broker, Metadata]]:
        """A broker's machine loses power, and any unflushed end of the log is gone."""
        after = decided(self.bounds, metadata._replace(cut=metadata.cut | {b}), metadata.controller)
        if not broker.running or after is None:
            return
        replica, spent = broker.replica, spent._replace(power_losses=spent.power_losses + 1)
        for end in range(replica.log.start, replica.log.end):
            for stopped in _crashed(broker, end=end):
                yield spent, stopped, knowing(after, b, None)

    def starts(
        self, b: BrokerId, broker: Broker, metadata: Metadata, witness: Witness
    ) -> Iterator[tuple[Broker, Metadata, Witness]]:
        """A broker process starts and registers.

        It cannot register while the previous session lasts: KRaft refuses another incarnation id, in ZooKeeper mode the
        znode exists. A KRaft broker has applied metadata up to its registration before it serves requests
        (BrokerServer.startup); a ZooKeeper-mode broker has no metadata until its first LeaderAndIsr request.
        """
        controller, epoch = metadata.controller, broker.replica.broker_epoch
        if not self.in_session(b, metadata):
            previous, epoch = epoch if broker.clean else -1, _next_epoch(metadata)
            registering = Register(b, epoch, incarnation=epoch, previous_epoch=previous)
            controller, _ = register(self.parameters, controller, registering, session_over=True)
        elif self.parameters.guards(mutants.NEW_INCARNATION):  # the mutant takes it for the previous process
            return
        after = decided(self.bounds, metadata, controller)
        if after is None:
            return
        replica, told = broker.replica._replace(broker_epoch=epoch), self.parameters.mode is Mode.KRAFT
        if told:
            replica = timeless(learn(self.parameters, replica, controller.partition, controller.brokers))
        started, seen = self.seen(Broker(replica), witness)
        yield started, knowing(after, b, len(after.log) - 1, untold=not told), seen

    def in_session(self, b: BrokerId, metadata: Metadata) -> bool:
        """Whether the session of the broker's last process still lasts."""
        registered = metadata.controller.broker(b)
        return registered is not None and not registered.fenced


def lost(_: InFlightFetch) -> Iterator[tuple[InFlightFetch]]:
    """A request or its response is lost with the connection."""
    yield (None,)


def _next_epoch(metadata: Metadata) -> int:
    return 1 + max(registered.epoch for _, registered in metadata.controller.brokers)


def fetch_to(follower: Broker, leader: BrokerId) -> ReplicaFetch | None:
    """The Fetch that a broker sends to this leader; None if it follows another."""
    fetch = request(follower.replica) if follower.running else None
    return fetch if fetch is not None and fetch.leader == leader else None


def _waits(follower: Broker, fetching: InFlightFetch) -> bool:
    sent = fetching.request if isinstance(fetching, ReplicaFetchResponse) else fetching
    return sent is not None and sent.broker_epoch == follower.replica.broker_epoch


def _in_isr(replica: Replica, brokers: tuple[BrokerId, ...]) -> bool:
    return replica.leadership is not None and not replica.leadership.isr.isdisjoint(brokers)


def _all_know_of_leaving(metadata: Metadata, b: BrokerId) -> bool:
    """Whether every active broker has seen that this one leaves (BrokerHeartbeatManager.lowestActiveOffset)."""
    for other in metadata.controller.active_brokers() - {b}:
        seen = metadata.known[other]
        leaving = metadata.log[seen].broker(b) if seen is not None else None
        if leaving is None or not leaving.shutting_down:
            return False
    return True


def _of_this_incarnation(broker: Broker, asked: AlterPartition) -> bool:
    return broker.running and broker.replica.broker_epoch == asked.broker_epoch


def _crashed(broker: Broker, *, end: int) -> Iterator[Broker]:
    """The broker after a crash, once for each high watermark that may have been checkpointed."""
    start, high_watermark = broker.replica.log.start, broker.replica.high_watermark
    for checkpoint in range(start, min(high_watermark, end) + 1):
        yield _stopped(broker, end=end, high_watermark=checkpoint)


def _stopped(broker: Broker, *, end: int, high_watermark: int) -> Broker:
    """The broker without its process."""
    replica = restart(broker.replica, broker.replica.broker_epoch, end=end, high_watermark=high_watermark)
    return Broker(replica, running=False)
