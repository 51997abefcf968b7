"""Hidden transitions: the steps of a cluster that the harness cannot observe, as rules of the reference model.

Followers fetch, brokers apply metadata, leaders send AlterPartition and get its response, brokers handle client
requests. A fetch request reaches its leader at once unless the leader is paused: a request does not change on its way,
so the time at which it was sent makes no difference. A fetch response may be under way for any time, for the leader has
already advanced the follower's LEO, and perhaps its own high watermark, when it sends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from lockstep.stepper.model.canonical import canonical, passed_over, without_stale
from lockstep.stepper.model.client_requests import handle
from lockstep.stepper.model.state import (
    AdmittedBatch,
    DelayedResponse,
    PartitionPlaces,
    PendingRequest,
    Response,
    Surroundings,
    acts,
)
from lockstep.stepper.model.transactions import (
    TransactionRules,
    asks_coordinator,
    has_late_markers,
    is_decided,
    is_transactional,
    is_uncertain,
)
from lockstep_model.controller import alter_partition
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.partition.in_sync import (
    AWAITING_METADATA,
    asked_for,
    lag_passes,
    rolled_back,
    sent_again,
    settle,
    shrink,
)
from lockstep_model.partition.produce import Produced, complete
from lockstep_model.partition.replica import HostedPartition, Replica, hear, learn
from lockstep_model.partition.replica_fetch import ReplicaFetch, ReplicaFetchResponse, answer, request, take
from lockstep_model.registration import AlterPartition, BrokerId
from lockstep_model.replication.state import (
    AlterPartitionResponse,
    Bounds,
    Broker,
    InFlightAlterPartition,
    InFlightFetch,
    Metadata,
    knowing,
    next_known,
    timeless,
)
from lockstep_model.state_machine import Machine, Outcomes, Part, Rule, State, always

LEARNING = Bounds(batches=True)
"""A KRaft broker may apply several metadata records as one delta (MetadataLoader); in ZooKeeper mode a later
LeaderAndIsr may overtake an earlier one."""


def machine(initial: State, *possible: Parameters) -> Machine:
    """The hidden transitions from a state on; while a config changes, each broker may apply any of these settings."""
    metadata: Metadata = initial[PartitionPlaces.METADATA]
    places = PartitionPlaces(len(metadata.known))
    rules = zip(*(_PartitionTransitions(parameters, places).all() for parameters in possible), strict=True)
    return Machine(initial=initial, rules=tuple(same[0] if len(same) == 1 else _any_of(same) for same in rules))


def _any_of(same: Sequence[Rule]) -> Rule:
    """One rule with the outcomes of all of these, which are the same rule under different settings."""

    def effect(*parts: Part) -> Outcomes:
        return dict.fromkeys(chain.from_iterable(rule.effect(*parts) for rule in same))

    return replace(same[0], effect=effect)


class _PartitionTransitions:
    """The rules for every broker, fetcher, client operation and the transactional id, under one set of settings.

    Each effect takes the parts that its rule reads, and yields what replaces them; it yields nothing where its guard
    does not hold.
    """

    def __init__(self, parameters: Parameters, places: PartitionPlaces) -> None:
        self.parameters = parameters
        self.places = places
        self.transactions = TransactionRules(parameters)

    def all(self) -> Iterator[Rule]:
        for broker in self.places.brokers:
            yield from self.of_broker(broker)
        for follower, leader in self.places.pairs:
            yield from self.of_fetcher(follower, leader)
        for slot in self.places.operations:
            for broker in self.places.brokers:
                yield from self.of_operation(slot, broker)
                yield from self.of_transactional_write(slot, broker)
        yield from self.of_transactions()

    def of_broker(self, b: BrokerId) -> Iterator[Rule]:
        around, metadata = PartitionPlaces.SURROUNDINGS, PartitionPlaces.METADATA
        broker, altering = self.places.broker(b), self.places.altering(b)
        answers = [self.places.fetching(b, other) for other in self.places.brokers if other != b]
        learns = (metadata, around, broker, *answers)
        yield _rule(f"{b} learns what the controller decided", learns, partial(self.learns, b))
        yield _rule(f"{b} hears of the partition", (broker, around, metadata), partial(self.hears, b))
        yield _rule(f"{b} is refused an ISR", (altering, metadata, broker), self.is_refused, _is(AlterPartition))
        yield _rule(
            f"{b} hears of the ISR it asked for", (altering, around, broker), self.settles, _is(AlterPartitionResponse)
        )

    def of_fetcher(self, f: BrokerId, to: BrokerId) -> Iterator[Rule]:
        around, fetching = PartitionPlaces.SURROUNDINGS, self.places.fetching(f, to)
        follower, leader, altering = self.places.broker(f), self.places.broker(to), self.places.altering(to)
        fetches = (fetching, around, follower, leader, altering)
        yield _rule(f"{f} fetches from {to}", fetches, partial(self.fetches, f, to), _nothing)
        yield _rule(f"{to} answers {f}", (fetching, around, leader, altering), self.answers, _is(ReplicaFetch))
        yield _rule(
            f"{f} takes the answer of {to}", (fetching, around, follower), self.takes, _is(ReplicaFetchResponse)
        )
        yield _rule(f"the lag time passes for {f} on {to}", (around, leader), partial(self.lags, f, to))

    def of_operation(self, slot: int, b: BrokerId) -> Iterator[Rule]:
        around, operation, broker = PartitionPlaces.SURROUNDINGS, self.places.operation(slot), self.places.broker(b)
        reads = (operation, around, broker)
        yield _rule(f"{b} handles operation {slot}", reads, self.handles, lambda op: _is_plain(op) and op.broker == b)
        waits = lambda op: _is(DelayedResponse)(op) and op.broker == b  # noqa: E731 - the guard of two rules
        yield _rule(f"{b} completes operation {slot}", reads, self.completes, waits)
        yield _rule(f"operation {slot} expires on {b}", reads, partial(self.expires, slot), waits)

    def of_transactional_write(self, slot: int, b: BrokerId) -> Iterator[Rule]:
        operation = self.places.operation(slot)
        reads = (operation, PartitionPlaces.SURROUNDINGS, self.places.broker(b), self.places.transactions)
        asks = partial(self.transactions.admits, b)
        yield _rule(f"{b} admits operation {slot}", reads, asks, lambda op: is_transactional(op) and op.broker == b)
        appends = self.transactions.appends
        yield _rule(
            f"{b} appends operation {slot}", reads, appends, lambda op: _is(AdmittedBatch)(op) and op.broker == b
        )

    def of_transactions(self) -> Iterator[Rule]:
        around, place, rules = PartitionPlaces.SURROUNDINGS, self.places.transactions, self.transactions
        for slot in self.places.operations:
            reads = (self.places.operation(slot), around, place)
            yield _rule(f"the coordinator handles operation {slot}", reads, rules.coordinates, asks_coordinator)
        for b in self.places.brokers:
            reads = (place, around, self.places.broker(b))
            yield _rule(f"{b} takes a marker", reads, rules.marks, is_decided)
            yield _rule(f"the marker on {b} is known to be replicated", reads, rules.completes, is_decided)
            yield _rule(f"{b} takes a late marker", reads, rules.marks_late, has_late_markers)
            yield _rule(f"the late marker on {b} is replicated", reads, rules.completes_late, has_late_markers)
        yield _rule("a transaction without markers ends", (place, around), rules.completes_without_markers, is_decided)
        yield _rule("another broker coordinates", (place, around), rules.is_taken_over, is_uncertain)

    # Brokers and the controller

    def learns(
        self, b: BrokerId, metadata: Metadata, around: Surroundings, broker: Broker, *fetching: InFlightFetch
    ) -> Iterator[tuple[Part, ...]]:
        """Broker applies a metadata update: partition state and broker registrations.

        KRaft: BrokerMetadataPublisher.onMetadataUpdate. ZooKeeper: ReplicaManager.becomeLeaderOrFollower on a
        LeaderAndIsr request. After a restart the broker also applies the image with which it started. An update that
        leaves the replica as it is need not be applied: without it the broker can still apply every later one.
        """
        if not acts(around, broker) or b in around.deaf:
            return
        for position in _news(self.parameters, metadata, broker.replica):
            new = metadata.log[position]
            if self.parameters.mode is Mode.ZK and not _told(metadata, b, position):
                continue
            for found in _found(broker.replica):
                replica = canonical(self.parameters, learn(self.parameters, found, new.partition, new.brokers))
                if replica != broker.replica:
                    left = (without_stale(replica, one) for one in fetching)
                    after = passed_over(self.parameters, knowing(metadata, b, position), replica)
                    yield after, around, broker._replace(replica=replica), *left

    def hears(
        self, b: BrokerId, broker: Broker, around: Surroundings, metadata: Metadata
    ) -> Iterator[tuple[Broker, Surroundings, Metadata]]:
        """Broker knows that the partition exists before it knows its leader epoch.

        ZooKeeper: after a broker's start the controller sends UpdateMetadata before LeaderAndIsr
        (KafkaController.onBrokerStartup). Both modes: a broker creates the Partition object a moment before it makes it
        leader or follower (ReplicaManager.getOrCreatePartition).
        """
        replicas, replica = metadata.controller.partition.replicas, broker.replica
        if (
            not replicas
            or not acts(around, broker)
            or metadata.known[b] is None
            or replica.hosting is HostedPartition.HERE
        ):
            return
        if self.parameters.mode is Mode.ZK and replica.hosting is HostedPartition.UNKNOWN:
            yield broker._replace(replica=hear(replica)), around, metadata
        if b in replicas:
            yield broker._replace(replica=replica._replace(hosting=HostedPartition.HERE)), around, metadata

    def is_refused(
        self, asked: AlterPartition, metadata: Metadata, broker: Broker
    ) -> Iterator[tuple[InFlightAlterPartition, Metadata, Broker]]:
        """Controller rejects an AlterPartition (KIP-497), which leaves no trace to observe.

        A granted one changes the partition's registration, which is observed (`controller_inference`). After an error
        that the leader retries, the request stays under way. After one that only newer metadata can resolve, the
        response changes nothing: the leader's ISR change stays pending (Partition.handleAlterPartitionError).
        """
        _, error = alter_partition(self.parameters, metadata.controller, asked)
        if error is not Error.NONE and not sent_again(error):
            yield None if error in AWAITING_METADATA else AlterPartitionResponse(asked, error), metadata, broker

    def settles(
        self, altered: AlterPartitionResponse, around: Surroundings, broker: Broker
    ) -> Iterator[tuple[InFlightAlterPartition, Surroundings, Broker]]:
        """Leader gets the AlterPartition response (Partition.submitAlterPartition, KIP-497)."""
        if acts(around, broker):
            replica = settle(self.parameters, broker.replica, altered.request, altered.answer)
            yield None, around, broker._replace(replica=replica)

    # Fetchers

    def fetches(
        self, f: BrokerId, to: BrokerId, fetching: None, around: Surroundings, follower: Broker, leader: Broker,
        altering: InFlightAlterPartition,
    ) -> Iterator[tuple[InFlightFetch, Surroundings, Broker, Broker, InFlightAlterPartition]]:  # fmt: skip
        """Follower sends a Fetch from its LEO, and the leader handles it; a paused leader finds it when it resumes.

        A response that would leave the follower as it is need not be delivered.
        """
        fetch = self._request(follower.replica)
        if fetch is None or fetch.leader != to or (f, to) in around.cut or not acts(around, follower):
            return
        if to in around.paused:
            yield fetch, around, follower, leader, altering
            return
        for answered, _, led, asks in self.answers(fetch, around, leader, altering):
            if answered is not None and self._taken(follower.replica, answered) == follower.replica:
                answered = None  # a response without effect on the follower
            if (answered, led, asks) != (fetching, leader, altering):
                yield answered, around, follower, led, asks

    def answers(
        self, fetch: ReplicaFetch, around: Surroundings, broker: Broker, altering: InFlightAlterPartition
    ) -> Iterator[tuple[ReplicaFetchResponse | None, Surroundings, Broker, InFlightAlterPartition]]:
        """Leader handles a follower's Fetch (Partition.fetchRecords, updateFollowerFetchState).

        The leader records the follower's LEO, may advance the high watermark, and may propose the follower for the ISR
        (Partition.maybeExpandIsr). The response is lost if the link was cut meanwhile.
        """
        if not acts(around, broker):
            return
        for before, asks in self._asking(fetch, around, broker.replica, altering):
            replica, answered = answer(self.parameters, before, fetch)
            replica = timeless(replica)
            if asked_for(replica) != asked_for(before):
                if asks is None:
                    asks = asked_for(replica)
                else:  # OPERATION_NOT_ATTEMPTED: an older AlterPartition, which the leader gave up, is still in flight
                    replica = rolled_back(replica)
            heeded = answered.error in (Error.NONE, Error.OFFSET_OUT_OF_RANGE)  # a follower's log ignores other errors
            arrives = (fetch.follower, fetch.leader) not in around.cut and heeded
            yield answered if arrives else None, around, broker._replace(replica=replica), asks

    def _asking(
        self, fetch: ReplicaFetch, around: Surroundings, leader: Replica, altering: InFlightAlterPartition
    ) -> Iterator[tuple[Replica, InFlightAlterPartition]]:
        """The leader as it is, and as it is after an AlterPartition that removes a follower which catches up only now.

        Normally ISR shrinks are inferred when the controller grants them (`tracker`). While the leader's AlterPartition
        requests are held back that is too late: when one arrives, the follower may have caught up again, and the leader
        would no longer ask for the shrink that the controller grants.
        """
        yield leader, altering
        late = fetch.leader in around.mute and (fetch.leader, fetch.follower) in around.late
        if altering is not None or not late:
            return
        asking = shrink(self.parameters, lag_passes(leader, fetch.follower))
        if asking.leadership is not None and asking.leadership.pending is not None:
            yield timeless(asking), asking.leadership.pending

    def takes(
        self, fetched: ReplicaFetchResponse, around: Surroundings, follower: Broker
    ) -> Iterator[tuple[InFlightFetch, Surroundings, Broker]]:
        """Follower handles a fetch response: appends, or truncates at the diverging epoch (AbstractFetcherThread)."""
        if acts(around, follower):
            yield None, around, follower._replace(replica=self._taken(follower.replica, fetched))

    def _request(self, follower: Replica) -> ReplicaFetch | None:
        """The follower's next Fetch request; only in KRaft does it carry the follower's broker epoch (KIP-903)."""
        fetch = request(follower)
        return fetch._replace(broker_epoch=0) if fetch is not None and self.parameters.mode is Mode.ZK else fetch

    def _taken(self, follower: Replica, fetched: ReplicaFetchResponse) -> Replica:
        """The follower after a fetch response. In ZooKeeper mode the broker epoch is not compared.

        A response to an earlier process of this broker cannot arrive: it is dropped when the process ends (`tracker`).
        """
        if self.parameters.mode is Mode.ZK:
            fetched = fetched._replace(request=fetched.request._replace(broker_epoch=follower.broker_epoch))
        return take(self.parameters, follower, fetched)

    def lags(
        self, f: BrokerId, to: BrokerId, around: Surroundings, leader: Broker
    ) -> Iterator[tuple[Surroundings, Broker]]:
        """Follower outside the ISR may not have reached the leader's LEO for replica.lag.time.max.ms.

        From then on it no longer holds back the high watermark (Partition.maybeIncrementLeaderHW). For a member of the
        ISR the lag only matters when the leader shrinks the ISR, which is observed once it is granted (`tracker`).
        """
        leadership = leader.replica.leadership
        if leadership is None or f in leadership.isr or (to, f) not in around.late:
            return
        replica = lag_passes(leader.replica, f)
        if replica != leader.replica:
            yield around, leader._replace(replica=replica)

    # Clients

    def handles(
        self, asked: PendingRequest, around: Surroundings, broker: Broker
    ) -> Iterator[tuple[PendingRequest | DelayedResponse | Response, Surroundings, Broker]]:
        """Broker handles a client request: it responds at once, or with acks=all when the write is committed."""
        if not acts(around, broker):
            return
        for replica, reply in handle(self.parameters, broker.replica, asked):
            yield reply, around, broker._replace(replica=replica)

    def completes(
        self, waits: DelayedResponse, around: Surroundings, broker: Broker
    ) -> Iterator[tuple[Response, Surroundings, Broker]]:
        """Delayed produce with acks=all completes: the write is committed, or this broker has lost its leadership.

        DelayedProduce.tryComplete, Partition.checkEnoughReplicasReachOffset. In ZooKeeper mode a broker whose session
        expired registers again within the same process, and still sends the response. A process that ended has no
        open write: the client gave it up when its connection broke.
        """
        same = self.parameters.mode is Mode.ZK or broker.replica.broker_epoch == waits.incarnation
        if acts(around, broker) and same:
            reply = complete(self.parameters, broker.replica, waits.waiting)
            if reply is not None and waits.reply in (None, reply):
                yield Response(reply), around, broker

    def expires(
        self, slot: int, waits: DelayedResponse, around: Surroundings, broker: Broker
    ) -> Iterator[tuple[Response, Surroundings, Broker]]:
        """Delayed produce times out: REQUEST_TIMED_OUT, and its records stay (DelayedProduce.onExpiration)."""
        reply = Produced(Error.REQUEST_TIMED_OUT)
        if slot in around.expired and acts(around, broker) and waits.reply in (None, reply):
            yield Response(reply), around, broker


def _found(replica: Replica) -> Iterator[Replica]:
    """The high watermarks with which a broker may host its replica again: the one it had, or none.

    While a broker does not host the partition, its log stays on disk, but the periodic checkpoint leaves out its high
    watermark, so it may be lost (ReplicaManager.checkpointHighWatermarks, Partition.createLog).
    """
    yield replica
    if replica.hosting is HostedPartition.ELSEWHERE and replica.high_watermark > replica.log.start:
        yield replica._replace(high_watermark=replica.log.start)


def _rule(
    name: str, reads: tuple[int, ...], effect: Callable[..., Outcomes], when: Callable[[Part], bool] = always
) -> Rule:
    return Rule(name=name, reads=reads, effect=effect, when=when)


def _is(kind: type) -> Callable[[object], bool]:
    return lambda part: isinstance(part, kind)


def _is_plain(operation: object) -> bool:
    """Whether a request is handled by its broker alone, without the transaction coordinator."""
    return isinstance(operation, PendingRequest) and not asks_coordinator(operation) and not is_transactional(operation)


def _nothing(part: object) -> bool:
    return part is None


def _leads(broker: Broker) -> bool:
    return broker.replica.leadership is not None


def _news(parameters: Parameters, metadata: Metadata, replica: Replica) -> range:
    """Positions in the metadata log that a broker may apply next; before its first, also the one it started with."""
    further = next_known(parameters, LEARNING, metadata, replica.broker)
    found = metadata.known[replica.broker]
    return range(found, len(metadata.log)) if found is not None and replica.leader_epoch < 0 else further


def _told(metadata: Metadata, b: BrokerId, position: int) -> bool:
    """Whether ZooKeeper's controller sends a broker this partition state.

    When a reassignment removes the broker from the replicas, the controller sends StopReplica once, and only to a live
    broker. A broker that is down at that moment keeps its replica.
    """
    known = metadata.known[b]
    later = metadata.log[known : position + 1] if known is not None else ()
    without = next((new for new in later if b not in new.partition.replicas), None)
    if without is None or b in metadata.log[position].partition.replicas:
        return True
    registered = without.broker(b)
    return registered is not None and not registered.fenced
