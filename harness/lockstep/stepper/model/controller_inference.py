"""Controller inference: the causes by which a controller may have come from one observed decision to the next.

The controller's registrations (partition and brokers) are observed; their causes are not. A decision is explained if a
sequence of causes leads to it in the reference model. A cause is a session that ended, a broker registration, an
AlterPartition from a leader, a controlled shutdown, a controller failover, or an administrative request of the harness.
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
"""The largest number of causes between two observed decisions."""


class Occasions(NamedTuple):
    """Possible causes of a controller decision, besides AlterPartition requests."""

    silent: Brokers = frozenset()
    """Brokers whose session may have timed out; in ZooKeeper mode, those without a znode."""
    leaving: Brokers = frozenset()
    """Brokers that may be in controlled shutdown."""
    left: Brokers = frozenset()
    """Brokers that shut down cleanly: they register with their previous broker epoch (KIP-966)."""
    preferred: bool = False
    """An ElectLeaders request for the preferred leader was sent."""
    unclean: bool = False
    """An ElectLeaders request for an unclean election was sent."""
    assignment: tuple[BrokerId, ...] | None = None
    """The replicas that a reassignment, or the creation of the topic, requested."""
    min_isr: bool = False
    """The topic's min.insync.replicas was changed."""


class Cause(NamedTuple):
    """One cause of a controller decision."""

    kind: str
    broker: BrokerId | None = None
    """The broker from which the cause came, if it came from one."""
    granted: AlterPartition | None = None
    """The AlterPartition that the controller applied, if that was the cause."""
    registered: BrokerId | None = None
    """The broker that registered, if that was the cause."""


class Explained(NamedTuple):
    """What all explanations of one decision say about its causes."""

    certain: frozenset[Cause]
    """Causes that every explanation has in common."""
    possible: frozenset[Cause]
    """Causes that some explanation has."""


class Explanation(NamedTuple):
    """The causes of a decision in order, with the controller's state before the first and after each."""

    causes: tuple[Cause, ...]
    controllers: tuple[Controller, ...]


def explanations(
    parameters: Parameters,
    controller: Controller,
    seen: Controller,
    occasions: Occasions,
    asked: Iterable[AlterPartition],
) -> Iterator[Explanation]:
    """Every sequence of causes from the controller's state to the observed one, shortest first, without cycles.

    Of these only the ones are kept in which the controller has noticed the most brokers (`_noticed`).
    """
    ways = _ways(parameters, controller, seen, occasions, asked, seen.partition.partition_epoch)
    explained = [way for way in ways if _is_seen(parameters, way.controllers[-1], seen)]
    acted = shown(controller) != (seen.partition, seen.epoch)
    noticed = [_noticed(way.controllers[-1], seen, gone=acted) for way in explained]
    return (way for way, brokers in zip(explained, noticed, strict=True) if brokers == max(noticed))


def _noticed(controller: Controller, seen: Controller, *, gone: bool) -> int:
    """In how many broker registrations the controller agrees with the observed ones.

    In ZooKeeper mode the znodes show which brokers are live, but not whether the controller has processed that change.
    Events are processed in order, so a controller that has acted has noticed every earlier change. Until it acts, it
    may have missed that a broker is gone, and may still decide as if the broker were live (`gone` is false: fenced
    brokers are not counted). A broker that has come may count as noticed at once: the controller has sent no metadata
    since, so the difference cannot be observed.
    """
    return sum(
        known is not None and known[:2] == registration[:2]  # the epoch, and whether it is there
        for broker, registration in seen.brokers
        for known in [controller.broker(broker)]
        if gone or not registration.fenced
    )


def shown(controller: Controller) -> tuple[Registration, int]:
    """The observable state of a controller besides brokers: the partition as written, and the controller epoch."""
    return controller.shown or controller.partition, controller.epoch


def _ways(
    parameters: Parameters,
    controller: Controller,
    seen: Controller,
    occasions: Occasions,
    asked: Iterable[AlterPartition],
    last: int,
) -> Iterator[Explanation]:
    """Every sequence of causes up to this partition epoch.

    In ZooKeeper mode each write to a znode is observed, so a sequence has at most one write, and ends with it.
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
    """Whether the controller's state agrees with the observed one.

    Brokers are compared in KRaft only: ZooKeeper does not show which broker changes its controller has processed.
    """
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
    """Each possible next cause, with the controller's state after it.

    A ZooKeeper controller finishes the writes of one event before it processes the next (ControllerEventManager);
    only another controller can interrupt them.
    """
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
    """Another controller is active, with the registrations as they were written.

    In ZooKeeper mode it also reads the live brokers anew (KafkaController.onControllerFailover).
    """
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
    """Causes that come from one broker: its registration, the end of its fencing, its controlled shutdown."""
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
    """Sessions that ended: KRaft fences one broker at a time, ZooKeeper's controller may process several at once."""
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
    """Causes that come from an administrative request: an election, a config change, a reassignment, a new topic."""
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
    """The causes that all explanations of a decision share, and those that at least one has."""
    causes = [frozenset(way.causes) for way in ways]
    return Explained(frozenset.intersection(*causes), frozenset.union(*causes))


def renumbered(controller: Controller, numbers: dict[BrokerId, BrokerId]) -> Controller:
    """The controller's state with every broker id replaced by its number."""
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
