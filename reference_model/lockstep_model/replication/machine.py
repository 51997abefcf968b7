"""One partition's replication as a state machine: the steps of brokers, controller and network.

A request and its response may be steps of their own: delayed for any time, or lost. Time is a step too: a session
expires, a follower lags for longer than replica.lag.time.max.ms. This module names the steps and the parts that each
reads; `actions` has their effects, by way of `controller`, `replica`, `replica_fetch` and `in_sync`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from lockstep_model.parameters import Parameters
from lockstep_model.partition.replica_fetch import ReplicaFetch, ReplicaFetchResponse
from lockstep_model.registration import AlterPartition, BrokerId
from lockstep_model.replication.actions import Steps, fetch_to, lost
from lockstep_model.replication.invariants import invariants
from lockstep_model.replication.state import (
    AlterPartitionResponse,
    Bounds,
    Broker,
    InFlightAlterPartition,
    InFlightFetch,
    Metadata,
    ReplicationLayout,
    initial,
    next_known,
)
from lockstep_model.state_machine import Machine, Outcomes, Part, Rule


def replication_machine(parameters: Parameters, bounds: Bounds) -> Machine:
    """The replication of one partition within these bounds."""
    places = ReplicationLayout(bounds.brokers)
    return Machine(
        initial=initial(parameters, bounds),
        rules=tuple(_ReplicationRules(parameters, bounds, places).all()),
        invariants=tuple(invariants(parameters, places)),
    )


class _ReplicationRules:
    """Rules of each broker, and of each pair of follower and leader."""

    def __init__(self, parameters: Parameters, bounds: Bounds, places: ReplicationLayout) -> None:
        self.parameters = parameters
        self.bounds = bounds
        self.places = places
        self.steps = Steps(parameters, bounds)

    def all(self) -> Iterator[Rule]:
        for b in self.places.brokers:
            yield from self.of_broker(b)
            yield from self.of_process(b)
        for follower, leader in self.places.pairs:
            yield from self.of_fetcher(follower, leader)
        reads = (ReplicationLayout.METADATA, ReplicationLayout.SPENT)
        yield Rule(name="the preferred leader is elected", reads=reads, effect=self.steps.preferred_leader_is_elected)

    def of_broker(self, b: BrokerId) -> Iterator[Rule]:
        metadata, spent, witness = ReplicationLayout.METADATA, ReplicationLayout.SPENT, ReplicationLayout.WITNESS
        broker, altering = self.places.broker(b), self.places.altering(b)
        yield _rule(
            f"the session of {b} ends", (metadata, spent), partial(self.steps.session_ends, b), partial(_unfenced, b)
        )
        yield _rule(
            f"{b} is heard again", (metadata, broker), partial(self.steps.is_heard_again, b), partial(_silent, b)
        )
        yield _rule(
            f"{b} learns what the controller decided",
            (metadata, broker, witness),
            partial(self.steps.learns, b),
            partial(self.behind, b),
        )
        yield _rule(f"a record is written to {b}", (broker, spent, witness), self.steps.is_written_to, _leads)
        yield _rule(
            f"{b} asks for an ISR without those that lag", (broker, altering), self.steps.asks_to_shrink, _leads
        )
        yield _rule(
            f"{b} asks for an ISR with those that it knew", (broker, altering), self.steps.asks_unfetched, _leads
        )
        for lagging in self.places.groups(b):
            names = " and ".join(map(str, lagging))
            lag = partial(self.steps.lag_time_passes, lagging)
            yield _rule(f"the lag time passes for {names} on {b}", (broker, altering), lag, _leads)
        yield _rule(
            f"the controller answers the AlterPartition of {b}",
            (altering, metadata),
            self.steps.alters,
            _is(AlterPartition),
        )
        yield _rule(
            f"the answer to the AlterPartition of {b} arrives",
            (altering, broker, witness),
            self.steps.settles,
            _is(AlterPartitionResponse),
        )
        yield _rule(f"the AlterPartition of {b} is lost", (altering, broker), self.steps.altering_is_lost, _under_way)

    def of_process(self, b: BrokerId) -> Iterator[Rule]:
        broker, bounds = self.places.broker(b), self.bounds
        reads = (ReplicationLayout.SPENT, broker, ReplicationLayout.METADATA)
        if bounds.shutdowns:
            yield Rule(name=f"{b} asks to shut down", reads=reads, effect=partial(self.steps.asks_to_leave, b))
            yield _rule(
                f"{b} leaves",
                (broker, ReplicationLayout.METADATA),
                partial(self.steps.leaves, b),
                lambda process: process.leaving,
            )
        yield _rule(f"{b} is killed", reads, partial(self.steps.is_killed, b), lambda spent: spent.kills < bounds.kills)
        yield _rule(
            f"{b} loses power",
            reads,
            partial(self.steps.loses_power, b),
            lambda spent: spent.power_losses < bounds.power_losses,
        )
        yield _rule(
            f"{b} starts",
            (broker, ReplicationLayout.METADATA, ReplicationLayout.WITNESS),
            partial(self.steps.starts, b),
            lambda process: not process.running,
        )

    def of_fetcher(self, f: BrokerId, to: BrokerId) -> Iterator[Rule]:
        spent, witness, fetching = ReplicationLayout.SPENT, ReplicationLayout.WITNESS, self.places.fetching(f, to)
        follower, leader, altering = self.places.broker(f), self.places.broker(to), self.places.altering(to)
        yield _rule(
            f"{f} fetches from {to}",
            (follower, fetching, leader, altering, witness),
            partial(self.steps.fetches, to),
            lambda process: fetch_to(process, to) is not None,
        )
        yield _rule(
            f"{f} sends a fetch to {to}",
            (spent, fetching, follower),
            partial(self.steps.sends_fetch, to),
            lambda used: used.delays < self.bounds.delays,
        )
        answers = (fetching, leader, altering, witness)
        yield _rule(f"{to} answers the fetch of {f}", answers, self.steps.answers, _is(ReplicaFetch))
        yield _rule(
            f"the answer of {to} reaches {f}", (fetching, follower), self.steps.takes, _is(ReplicaFetchResponse)
        )
        yield _rule(f"the fetch of {f} from {to} is lost", (fetching,), lost, _under_way)

    def behind(self, b: BrokerId, metadata: Metadata) -> bool:
        return bool(next_known(self.parameters, self.bounds, metadata, b))


def _rule(name: str, reads: tuple[int, ...], effect: Callable[..., Outcomes], when: Callable[[Part], bool]) -> Rule:
    return Rule(name=name, reads=reads, effect=effect, when=when)


def _is(kind: type) -> Callable[[object], bool]:
    return lambda part: isinstance(part, kind)


def _under_way(message: InFlightAlterPartition | InFlightFetch) -> bool:
    return message is not None


def _leads(broker: Broker) -> bool:
    return broker.replica.leadership is not None


def _unfenced(b: BrokerId, metadata: Metadata) -> bool:
    registered = metadata.controller.broker(b)
    return registered is not None and not registered.fenced


def _silent(b: BrokerId, metadata: Metadata) -> bool:
    """The broker process runs, but the controller has fenced it."""
    return metadata.known[b] is not None and not _unfenced(b, metadata)
