"""How a controller may have come from one decision to the next, by the reference model.

What it decided is seen; why is not. A decision is explained if some of the things that may have moved the controller,
one after the other, lead to what was seen: a session that ended, a registration, an ISR that a leader asked for,
something that the harness asked for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from reference_model.controller import (
    Controller,
    alter_partition,
    create,
    elect_preferred,
    elect_unclean,
    fence,
    move,
    reassign,
    register,
    shut_down,
    unfence,
    zookeeper,
)
from reference_model.errors import Error
from reference_model.parameters import Mode, Parameters
from reference_model.registration import AlterPartition, BrokerId, Brokers, Register, Registration

LONGEST = 6
"""So many causes may lie between two decisions."""


class Occasions(NamedTuple):
    """What may move a controller besides what leaders ask for."""

    silent: Brokers = frozenset()
    """Whose session may be over."""
    leaving: Brokers = frozenset()
    """Who was told to shut down."""
    left: Brokers = frozenset()
    """Who did so, and has said so when it registers again."""
    preferred: bool = False
    """Somebody asked for a preferred election."""
    unclean: bool = False
    """Somebody asked for an unclean election."""
    assignment: tuple[BrokerId, ...] | None = None
    """Somebody asked for the partition to be on these brokers."""


class Cause(NamedTuple):
    """One thing that moved the controller."""

    kind: str
    broker: BrokerId | None = None
    """Whose doing it was, where it was a broker's."""
    granted: AlterPartition | None = None
    registered: BrokerId | None = None


class Explained(NamedTuple):
    """What is known of why the controller decided something."""

    certain: frozenset[Cause]
    """Causes that every explanation has in common."""
    possible: frozenset[Cause]
    """Causes that some explanation has."""


class Explanation(NamedTuple):
    """The causes of a decision in their order, with what the controller knew after each."""

    causes: tuple[Cause, ...]
    controllers: tuple[Controller, ...]


def explanations(
    parameters: Parameters,
    controller: Controller,
    seen: Controller,
    occasions: Occasions,
    asked: Iterable[AlterPartition],
) -> Iterator[Explanation]:
    """Every way from what the controller knew to what was seen of it, shortest first, and none that goes in circles."""
    ways = _ways(parameters, controller, seen, occasions, asked, seen.partition.partition_epoch)
    explained = [way for way in ways if _is_seen(parameters, way.controllers[-1], seen)]
    noticed = [_noticed(way.controllers[-1], seen) for way in explained]
    return (way for way, brokers in zip(explained, noticed, strict=True) if brokers == max(noticed))


def _noticed(controller: Controller, seen: Controller) -> int:
    """How many brokers the controller knows to have come or gone.

    ZooKeeper does not tell, but a controller that has time for anything has heard of that before.
    """
    return sum(
        known is not None and known[:2] == registration[:2]  # the epoch, and whether it is there
        for broker, registration in seen.brokers
        for known in [controller.broker(broker)]
    )


def unnoticed(
    parameters: Parameters,
    controller: Controller,
    seen: Controller,
    occasions: Occasions,
    asked: Iterable[AlterPartition],
) -> Iterator[Explanation]:
    """Every way that leaves the partition as it is: a broker may have come or gone without anybody seeing it."""
    return _ways(parameters, controller, seen, occasions, asked, controller.partition.partition_epoch)


def unseen(
    parameters: Parameters,
    controller: Controller,
    seen: Controller,
    occasions: Occasions,
    asked: Iterable[AlterPartition],
) -> Iterator[Explanation]:
    """Every way to the next change of the partition, on the way to what was seen."""
    following = controller.partition.partition_epoch + 1
    for way in _ways(parameters, controller, seen, occasions, asked, following):
        if way.controllers[-1].partition.partition_epoch == following:
            yield way


def _ways(
    parameters: Parameters,
    controller: Controller,
    seen: Controller,
    occasions: Occasions,
    asked: Iterable[AlterPartition],
    last: int,
) -> Iterator[Explanation]:
    """Every way that does not go past this partition epoch."""
    ways = [Explanation((), (controller,))]
    been = {controller}
    for _ in range(LONGEST + 1):
        yield from ways
        further = []
        for way in ways:
            for cause, after in _moves(parameters, way.controllers[-1], seen, occasions, asked):
                if after not in been and after.partition.partition_epoch <= last:
                    been.add(after)
                    further.append(Explanation((*way.causes, cause), (*way.controllers, after)))
        ways = further


def _is_seen(parameters: Parameters, controller: Controller, seen: Controller) -> bool:
    """Whether this may be what was seen. ZooKeeper does not tell whom its controller has noticed to be gone."""
    if (controller.partition, controller.epoch) != (seen.partition, seen.epoch):
        return False
    return parameters.mode is Mode.ZK or all(
        known is not None and known[:3] == registration[:3]  # the epoch, fenced, shutting down
        for broker, registration in seen.brokers
        for known in [controller.broker(broker)]
    )


def _moves(
    parameters: Parameters,
    controller: Controller,
    seen: Controller,
    occasions: Occasions,
    asked: Iterable[AlterPartition],
) -> Iterator[tuple[Cause, Controller]]:
    """What may move the controller next, and where to."""
    for request in asked:
        after, error = alter_partition(parameters, controller, request)
        if error in (Error.NONE, Error.NEW_LEADER_ELECTED):
            yield Cause("a leader asked for another ISR", request.broker, granted=request), after
    for broker, registration in seen.brokers:
        yield from _of_broker(parameters, controller, broker, registration.epoch, seen, occasions)
    yield from _of_administrator(parameters, controller, occasions)
    if parameters.mode is Mode.ZK:
        yield Cause("an election where nobody led"), _elected_offline(parameters, controller)
    if seen.epoch > controller.epoch:
        yield Cause("another controller took over"), move(parameters, controller)._replace(epoch=seen.epoch)
        if parameters.mode is Mode.ZK:
            yield Cause("another controller took over, and begins"), _taken_over(controller, seen, occasions)


def _of_broker(
    parameters: Parameters,
    controller: Controller,
    broker: BrokerId,
    epoch: int,
    seen: Controller,
    occasions: Occasions,
) -> Iterator[tuple[Cause, Controller]]:
    """What one broker may move the controller to."""
    known = controller.broker(broker)
    target = seen.broker(broker)
    if target is not None and (known is None or known.epoch != epoch):
        previous = known.epoch if known is not None and broker in occasions.left else -1
        request = Register(broker, epoch, incarnation=target.incarnation, previous_epoch=previous)
        for over in (False, True) if broker in occasions.silent else (False,):
            after, error = register(parameters, controller, request, session_over=over)
            if error is Error.NONE:
                if parameters.mode is Mode.ZK:
                    after = _before_election(parameters, controller, after, broker)
                yield Cause("a broker registered", broker, registered=broker), after
    if known is None:
        return
    if broker in occasions.silent:
        yield Cause("a session ended", broker), fence(parameters, controller, broker)
        if parameters.mode is Mode.ZK:
            yield from _half_fenced(parameters, controller, broker)
    if known.fenced:
        yield Cause("a broker was heard again", broker), unfence(parameters, controller, broker)
    if broker in occasions.leaving:
        for elsewhere in (False, True):
            after, _ = shut_down(parameters, controller, broker, known.epoch, leads_elsewhere=elsewhere)
            yield Cause("a broker asked to leave", broker), after


def _before_election(parameters: Parameters, before: Controller, after: Controller, broker: BrokerId) -> Controller:
    """ZooKeeper's controller tells a new broker of its replicas as they are, and only then lets it lead.

    KafkaController.onBrokerStartup: OnlineReplica is sent before triggerOnlinePartitionStateChange.
    """
    registration = after.broker(broker)
    assert registration is not None
    told = fence(parameters, before, broker).with_broker(broker, registration)
    return told if _elected_offline(parameters, told) == after else after


def _elected_offline(parameters: Parameters, controller: Controller) -> Controller:
    return zookeeper.elect_offline(parameters, controller, unclean=parameters.unclean)


def _taken_over(controller: Controller, seen: Controller, occasions: Occasions) -> Controller:
    """What ZooKeeper's new controller knows before it does anything: who is there, but not who was leaving."""
    for broker, known in controller.brokers:
        fenced = known.fenced or broker in occasions.silent
        controller = controller.marked(broker, fenced=fenced, shutting_down=False)
    return controller._replace(epoch=seen.epoch)


def _half_fenced(
    parameters: Parameters, controller: Controller, broker: BrokerId
) -> Iterator[tuple[Cause, Controller]]:
    """ZooKeeper's controller writes a partition's state once for the new leader, and again for the ISR.

    In this order when a broker fails, in the other when it takes over itself (KafkaController.onControllerFailover).
    """
    gone = controller.marked(broker, fenced=True, shutting_down=False)
    yield Cause("a broker is gone, and led no more", broker), _elected_offline(parameters, gone)
    if controller == gone:
        partition = zookeeper.remove_from_isr(parameters, controller.partition, broker)
        yield Cause("a broker is gone, and left the ISR", broker), controller.with_partition(partition)


def _of_administrator(
    parameters: Parameters, controller: Controller, occasions: Occasions
) -> Iterator[tuple[Cause, Controller]]:
    """What somebody's request may move the controller to."""
    if occasions.preferred:
        yield Cause("a preferred election"), elect_preferred(parameters, controller)[0]
    if occasions.unclean:
        yield Cause("an unclean election"), elect_unclean(parameters, controller)[0]
    if occasions.assignment is None:
        return
    if controller.partition.replicas:
        moved, _ = reassign(parameters, controller, occasions.assignment)
        yield Cause("a reassignment"), moved
    else:
        yield Cause("the creation of the topic"), create(parameters, controller, occasions.assignment)[0]


def in_common(ways: Iterable[Explanation]) -> Explained:
    """What several explanations of one decision have in common, and what only some of them have."""
    causes = [frozenset(way.causes) for way in ways]
    return Explained(frozenset.intersection(*causes), frozenset.union(*causes))


def renumbered(controller: Controller, numbers: dict[BrokerId, BrokerId]) -> Controller:
    """The same, with other ids of brokers."""
    brokers = tuple((numbers[broker], known) for broker, known in controller.brokers if broker in numbers)
    return controller._replace(partition=_renumbered(controller.partition, numbers), brokers=tuple(sorted(brokers)))


def _renumbered(partition: Registration, numbers: dict[BrokerId, BrokerId]) -> Registration:
    return partition._replace(
        replicas=tuple(numbers[broker] for broker in partition.replicas),
        isr=frozenset(numbers[broker] for broker in partition.isr),
        leader=numbers.get(partition.leader, partition.leader),
        elr=frozenset(numbers[broker] for broker in partition.elr),
        last_known_elr=tuple(numbers[broker] for broker in partition.last_known_elr),
        adding=frozenset(numbers[broker] for broker in partition.adding),
        removing=frozenset(numbers[broker] for broker in partition.removing),
    )
