"""What happens inside a cluster without anybody seeing it, as rules of the reference model.

Followers fetch, brokers learn what the controller decided, leaders ask for other ISRs, requests are answered. A fetch
reaches its leader at once unless that is paused: what a follower asks does not change on the way, so it makes no
difference when it left. Its answer takes time, for meanwhile the leader is known to have given it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from harness.lockstep.handling import handle
from harness.lockstep.world import Answered, Asked, Places, Surroundings, Waits
from reference_model.cluster import Altering, Bounds, Broker, Fetching, Metadata, knowing, next_known, timeless
from reference_model.cluster import Answered as Altered
from reference_model.controller import alter_partition
from reference_model.errors import Error
from reference_model.in_sync import AWAITING_METADATA, asked_for, lag_passes, rolled_back, sent_again, settle
from reference_model.machine import Machine, Outcomes, Part, Rule, State, always
from reference_model.parameters import Mode, Parameters
from reference_model.produce import Produced, complete
from reference_model.registration import AlterPartition, BrokerId
from reference_model.replica import Hosting, Replica, hear, learn
from reference_model.replica_fetch import ReplicaFetch, ReplicaFetched, answer, request, take

LEARNING = Bounds(batches=True)
"""A broker may learn of several decisions at once (MetadataLoader), or of later ones first (LeaderAndIsr)."""


def machine(parameters: Parameters, initial: State) -> Machine:
    """Everything that can happen unseen, from a state on."""
    metadata: Metadata = initial[Places.METADATA]
    return Machine(initial=initial, rules=tuple(_Rules(parameters, Places(len(metadata.known))).all()))


class _Rules:
    def __init__(self, parameters: Parameters, places: Places) -> None:
        self.parameters = parameters
        self.places = places

    def all(self) -> Iterator[Rule]:
        for broker in self.places.brokers:
            yield from self.of_broker(broker)
        for follower, leader in self.places.pairs:
            yield from self.of_fetcher(follower, leader)
        for slot in self.places.operations:
            for broker in self.places.brokers:
                yield from self.of_operation(slot, broker)

    def of_broker(self, b: BrokerId) -> Iterator[Rule]:
        around, metadata = Places.SURROUNDINGS, Places.METADATA
        broker, altering = self.places.broker(b), self.places.altering(b)
        yield _rule(f"{b} learns what the controller decided", (metadata, around, broker), partial(self.learns, b))
        yield _rule(f"{b} hears of the partition", (broker, around, metadata), partial(self.hears, b))
        yield _rule(f"{b} is refused an ISR", (altering, metadata, broker), self.is_refused, _is(AlterPartition))
        yield _rule(f"{b} hears of the ISR it asked for", (altering, around, broker), self.settles, _is(Altered))

    def of_fetcher(self, f: BrokerId, to: BrokerId) -> Iterator[Rule]:
        around, fetching = Places.SURROUNDINGS, self.places.fetching(f, to)
        follower, leader, altering = self.places.broker(f), self.places.broker(to), self.places.altering(to)
        fetches = (fetching, around, follower, leader, altering)
        yield _rule(f"{f} fetches from {to}", fetches, partial(self.fetches, f, to), _nothing)
        yield _rule(f"{to} answers {f}", (fetching, around, leader, altering), self.answers, _is(ReplicaFetch))
        yield _rule(f"{f} takes the answer of {to}", (fetching, around, follower), self.takes, _is(ReplicaFetched))
        yield _rule(f"the lag time passes for {f} on {to}", (around, leader), partial(self.lags, f, to))

    def of_operation(self, slot: int, b: BrokerId) -> Iterator[Rule]:
        around, operation, broker = Places.SURROUNDINGS, self.places.operation(slot), self.places.broker(b)
        reads = (operation, around, broker)
        yield _rule(f"{b} handles operation {slot}", reads, self.handles, lambda op: _is(Asked)(op) and op.broker == b)
        waits = lambda op: _is(Waits)(op) and op.broker == b  # noqa: E731 - the guard of two rules
        yield _rule(f"{b} completes operation {slot}", reads, self.completes, waits)
        yield _rule(f"operation {slot} expires on {b}", reads, partial(self.expires, slot), waits)

    # Brokers and the controller

    def learns(
        self, b: BrokerId, metadata: Metadata, around: Surroundings, broker: Broker
    ) -> Iterator[tuple[Metadata, Surroundings, Broker]]:
        """A broker learns who leads and who is there. One that has just started learns what it has found, too."""
        if not _acts(around, broker) or b in around.deaf:
            return
        for position in _news(self.parameters, metadata, broker.replica):
            new = metadata.log[position]
            replica = timeless(learn(self.parameters, broker.replica, new.partition, new.brokers))
            yield knowing(metadata, b, position), around, broker._replace(replica=replica)

    def hears(
        self, b: BrokerId, broker: Broker, around: Surroundings, metadata: Metadata
    ) -> Iterator[tuple[Broker, Surroundings, Metadata]]:
        """A broker knows of a partition before it knows who leads it.

        ZooKeeper's controller tells it who leads what before it tells it of its own replicas, and any broker has made a
        replica for a moment before that has an epoch (ReplicaManager.getOrCreatePartition).
        """
        replicas, replica = metadata.controller.partition.replicas, broker.replica
        if not replicas or not _acts(around, broker) or metadata.known[b] is None or replica.hosting is Hosting.HERE:
            return
        if self.parameters.mode is Mode.ZK and replica.hosting is Hosting.UNKNOWN:
            yield broker._replace(replica=hear(replica)), around, metadata
        if b in replicas:
            yield broker._replace(replica=replica._replace(hosting=Hosting.HERE)), around, metadata

    def is_refused(
        self, asked: AlterPartition, metadata: Metadata, broker: Broker
    ) -> Iterator[tuple[Altering, Metadata, Broker]]:
        """The controller refuses, which nobody sees. What it grants is seen, and explained elsewhere (`explaining`)."""
        _, error = alter_partition(self.parameters, metadata.controller, as_sent(asked, broker))
        if error is not Error.NONE and not sent_again(error):
            yield None if error in AWAITING_METADATA else Altered(asked, error), metadata, broker

    def settles(
        self, altered: Altered, around: Surroundings, broker: Broker
    ) -> Iterator[tuple[Altering, Surroundings, Broker]]:
        """A leader hears what became of the ISR that it asked for."""
        if _acts(around, broker):
            replica = settle(self.parameters, broker.replica, altered.request, altered.answer)
            yield None, around, broker._replace(replica=replica)

    # Fetchers

    def fetches(
        self, f: BrokerId, to: BrokerId, fetching: None, around: Surroundings, follower: Broker, leader: Broker,
        altering: Altering,
    ) -> Iterator[tuple[Fetching, Surroundings, Broker, Broker, Altering]]:  # fmt: skip
        """A follower asks for what comes next. Where the leader is paused the request waits for it."""
        fetch = request(follower.replica)
        if fetch is None or fetch.leader != to or (f, to) in around.cut or not _acts(around, follower):
            return
        if to in around.paused:
            yield fetch, around, follower, leader, altering
            return
        for answered, _, led, asks in self.answers(fetch, around, leader, altering):
            if answered is not None and take(self.parameters, follower.replica, answered) == follower.replica:
                answered = None  # it tells the follower nothing
            if (answered, led, asks) != (fetching, leader, altering):
                yield answered, around, follower, led, asks

    def answers(
        self, fetch: ReplicaFetch, around: Surroundings, broker: Broker, altering: Altering
    ) -> Iterator[tuple[ReplicaFetched | None, Surroundings, Broker, Altering]]:
        """A broker answers a follower, and may want it in the ISR; the answer is lost where the link was cut since."""
        if not _acts(around, broker):
            return
        replica, answered = answer(self.parameters, broker.replica, fetch)
        replica = timeless(replica)
        if asked_for(replica) != asked_for(broker.replica):
            if altering is None:
                altering = asked_for(replica)
            else:  # OPERATION_NOT_ATTEMPTED: one is under way that it no longer waits for
                replica = rolled_back(replica)
        arrives = (fetch.follower, fetch.leader) not in around.cut
        yield answered if arrives else None, around, broker._replace(replica=replica), altering

    def takes(
        self, fetched: ReplicaFetched, around: Surroundings, follower: Broker
    ) -> Iterator[tuple[Fetching, Surroundings, Broker]]:
        """A follower appends or truncates."""
        if _acts(around, follower):
            yield None, around, follower._replace(replica=take(self.parameters, follower.replica, fetched))

    def lags(
        self, f: BrokerId, to: BrokerId, around: Surroundings, leader: Broker
    ) -> Iterator[tuple[Surroundings, Broker]]:
        """A follower was not at the leader's end for replica.lag.time.max.ms, as far as the clock can tell.

        Where it is in the ISR that makes no difference until the leader asks for one without it, which is seen if it is
        granted (`following`).
        """
        leadership = leader.replica.leadership
        if leadership is None or f in leadership.isr or (to, f) not in around.late:
            return
        replica = lag_passes(leader.replica, f)
        if replica != leader.replica:
            yield around, leader._replace(replica=replica)

    # Clients

    def handles(
        self, asked: Asked, around: Surroundings, broker: Broker
    ) -> Iterator[tuple[Waits | Answered, Surroundings, Broker]]:
        """A broker looks at a client's request: what it answers is known at once, or when a write is committed."""
        if not _acts(around, broker):
            return
        for replica, reply in handle(self.parameters, broker.replica, asked):
            yield reply, around, broker._replace(replica=replica)

    def completes(
        self, waits: Waits, around: Surroundings, broker: Broker
    ) -> Iterator[tuple[Answered, Surroundings, Broker]]:
        """A write is committed, or cannot be any more by this broker."""
        if _acts(around, broker) and broker.replica.broker_epoch == waits.incarnation:
            reply = complete(self.parameters, broker.replica, waits.waiting)
            if reply is not None and waits.reply in (None, reply):
                yield Answered(reply), around, broker

    def expires(
        self, slot: int, waits: Waits, around: Surroundings, broker: Broker
    ) -> Iterator[tuple[Answered, Surroundings, Broker]]:
        """A write waited for as long as its producer said, and stays where it is (DelayedProduce.onExpiration)."""
        reply = Produced(Error.REQUEST_TIMED_OUT)
        if slot in around.expired and _acts(around, broker) and waits.reply in (None, reply):
            yield Answered(reply), around, broker


def _rule(
    name: str, reads: tuple[int, ...], effect: Callable[..., Outcomes], when: Callable[[Part], bool] = always
) -> Rule:
    return Rule(name=name, reads=reads, effect=effect, when=when)


def _is(kind: type) -> Callable[[object], bool]:
    return lambda part: isinstance(part, kind)


def _nothing(part: object) -> bool:
    return part is None


def _leads(broker: Broker) -> bool:
    return broker.replica.leadership is not None


def _acts(around: Surroundings, broker: Broker) -> bool:
    return broker.running and broker.replica.broker not in around.paused


def _news(parameters: Parameters, metadata: Metadata, replica: Replica) -> range:
    further = next_known(parameters, LEARNING, metadata, replica.broker)
    found = metadata.known[replica.broker]
    return range(found, len(metadata.log)) if found is not None and replica.leader_epoch < 0 else further


def as_sent(asked: AlterPartition, broker: Broker) -> AlterPartition:
    """A broker that registers anew sends again what it asked for, under its new epoch (AlterPartitionManager)."""
    return asked._replace(broker_epoch=broker.replica.broker_epoch)
