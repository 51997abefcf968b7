"""How a controller may have come from one decision to the next, by the reference model.

What it decided is seen; why is not. A decision is explained if some of the things that may have moved the controller,
one after the other, lead to what was seen: a session that ended, a registration, an ISR that a leader asked for,
something that the harness asked for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lockstep_model.controller import (
    Controller,
    alter_partition,
    begin_alter_partition,
    begin_failover,
    begin_failure,
    begin_reassignment,
    begin_startup,
    create,
    elect_preferred,
    elect_unclean,
    fence,
    min_isr_changed,
    move,
    reassign,
    register,
    shut_down,
    unfence,
)
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.registration import AlterPartition, BrokerId, Brokers, Register, Registration

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
    min_isr: bool = False
    """Somebody set min.insync.replicas."""


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
    acted = shown(controller) != (seen.partition, seen.epoch)
    noticed = [_noticed(way.controllers[-1], seen, gone=acted) for way in explained]
    return (way for way, brokers in zip(explained, noticed, strict=True) if brokers == max(noticed))


def _noticed(controller: Controller, seen: Controller, *, gone: bool) -> int:
    """How many brokers the controller knows to have come, or to be gone.

    ZooKeeper does not tell. A controller that has time for anything has heard of that before. As long as it was not
    seen to do anything, it may not know who is gone, and decide once more as if it were there. That it may not yet know
    who has come makes no difference: it knows, and nobody was told.
    """
    return sum(
        known is not None and known[:2] == registration[:2]  # the epoch, and whether it is there
        for broker, registration in seen.brokers
        for known in [controller.broker(broker)]
        if gone or not registration.fenced
    )


def shown(controller: Controller) -> tuple[Registration, int]:
    """What is seen of what a controller knows, but for brokers."""
    return controller.shown or controller.partition, controller.epoch


def _ways(
    parameters: Parameters,
    controller: Controller,
    seen: Controller,
    occasions: Occasions,
    asked: Iterable[AlterPartition],
    last: int,
) -> Iterator[Explanation]:
    """Every way that does not go past this partition epoch.

    In ZooKeeper mode each write is seen, so there is at most one on a way, and it is the last thing there.
    """
    ways = [Explanation((), (controller,))]
    been = {controller}
    for _ in range(LONGEST + 1):
        yield from ways
        further = []
        for way in ways:
            if parameters.mode is Mode.ZK and shown(way.controllers[-1]) != shown(controller):
                continue
            for cause, after in _moves(parameters, way.controllers[-1], seen, occasions, asked):
                if after not in been and after.partition.partition_epoch <= last:
                    been.add(after)
                    further.append(Explanation((*way.causes, cause), (*way.controllers, after)))
        ways = further


def _is_seen(parameters: Parameters, controller: Controller, seen: Controller) -> bool:
    """Whether this may be what was seen. ZooKeeper does not tell whom its controller has noticed to be gone."""
    if shown(controller) != (seen.partition, seen.epoch):
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
    if seen.epoch > controller.epoch:
        yield Cause("another controller took over"), _taken_over(parameters, controller, seen)
    if controller.writing:
        yield Cause("it writes what it has begun"), controller.written()
        return
    for request in asked:
        after, error = _altered(parameters, controller, request)
        if error in (Error.NONE, Error.NEW_LEADER_ELECTED):
            yield Cause("a leader asked for another ISR", request.broker, granted=request), after
    for broker, registration in seen.brokers:
        yield from _of_broker(parameters, controller, broker, registration.epoch, seen, occasions)
    yield from _gone(parameters, controller, occasions.silent)
    yield from _of_administrator(parameters, controller, occasions)


def _altered(parameters: Parameters, controller: Controller, request: AlterPartition) -> tuple[Controller, Error]:
    alter = begin_alter_partition if parameters.mode is Mode.ZK else alter_partition
    return alter(parameters, controller, request)


def _taken_over(parameters: Parameters, controller: Controller, seen: Controller) -> Controller:
    """Another controller has read what was on record; ZooKeeper's also who is there."""
    if parameters.mode is Mode.KRAFT:
        return move(parameters, controller)._replace(epoch=seen.epoch)
    for broker, registration in seen.brokers:
        controller = controller.with_broker(broker, registration)
    return begin_failover(parameters, controller)._replace(epoch=seen.epoch)


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
        for after in _registered(parameters, controller, request, silent=broker in occasions.silent):
            yield Cause("a broker registered", broker, registered=broker), after
    if known is None:
        return
    if known.fenced:
        yield Cause("a broker was heard again", broker), unfence(parameters, controller, broker)
    if broker in occasions.leaving:
        for elsewhere in (False, True):
            after, _ = shut_down(parameters, controller, broker, known.epoch, leads_elsewhere=elsewhere)
            yield Cause("a broker asked to leave", broker), after


def _registered(
    parameters: Parameters, controller: Controller, request: Register, *, silent: bool
) -> Iterator[Controller]:
    if parameters.mode is Mode.ZK:
        yield begin_startup(parameters, controller, request)
        return
    for over in (False, True) if silent else (False,):
        after, error = register(parameters, controller, request, session_over=over)
        if error is Error.NONE:
            yield after


def _gone(parameters: Parameters, controller: Controller, silent: Brokers) -> Iterator[tuple[Cause, Controller]]:
    """Sessions that are over: KRaft's controller ends one after the other, ZooKeeper's may notice several at once."""
    over = silent.difference(broker for broker, registration in controller.brokers if registration.fenced)
    for broker in sorted(over):
        noticed = parameters.mode is Mode.ZK
        after = begin_failure(parameters, controller, [broker]) if noticed else fence(parameters, controller, broker)
        yield Cause("a session ended", broker), after
    if parameters.mode is Mode.ZK and len(over) > 1:
        yield Cause("several sessions ended"), begin_failure(parameters, controller, over)


def _of_administrator(
    parameters: Parameters, controller: Controller, occasions: Occasions
) -> Iterator[tuple[Cause, Controller]]:
    """What somebody's request may move the controller to."""
    if occasions.preferred:
        yield Cause("a preferred election"), elect_preferred(parameters, controller)[0]
    if occasions.unclean:
        yield Cause("an unclean election"), elect_unclean(parameters, controller)[0]
    if occasions.min_isr:
        yield Cause("a new min.insync.replicas"), min_isr_changed(parameters, controller)
    if occasions.assignment is None:
        return
    if controller.partition.replicas:
        move_to = begin_reassignment if parameters.mode is Mode.ZK else reassign
        yield Cause("a reassignment"), move_to(parameters, controller, occasions.assignment)[0]
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
