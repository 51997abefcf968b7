"""The parts of our own model that are machines, each with the guards that it needs and where that shows."""

from __future__ import annotations

import dataclasses
from functools import partial

from lockstep.exploration.specification import Shown, Specification
from lockstep_model.controller import standalone
from lockstep_model.groups import classic_machine, consumer_machine, pending_machine
from lockstep_model.groups import mutants as groups
from lockstep_model.groups.parameters import GroupParameters, group_parameters_for
from lockstep_model.parameters import Parameters, parameters_for
from lockstep_model.partition import idempotent_producer
from lockstep_model.replication import mutants as partition
from lockstep_model.replication.machine import replication_machine
from lockstep_model.replication.state import Bounds as Partition
from lockstep_model.state_machine import Machine
from lockstep_model.transactions import invariants as promises
from lockstep_model.transactions import machine as transactions
from lockstep_model.transactions import mutants as guards
from lockstep_model.transactions.coordinator import LAST_EPOCH
from lockstep_model.transactions.state import LateRequest
from lockstep_model.transactions.state import TransactionBounds as Transactions

# --- Replication ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PartitionBounds(Partition):
    """Of one partition, with its topic's min.insync.replicas."""

    min_isr: int = 2


_WITH_A_CRASH = PartitionBounds(records=2, leader_epochs=2, partition_epochs=2, fencings=0, kills=1, delays=0)
"""Three brokers, of which one is killed and comes back, and all that follows from it. What needs a broker that is
fenced while it runs, a fetch that is delayed, or a lost log is in the tests, and in the mutants' bounds."""
_PAIR = PartitionBounds(brokers=2, in_sync=2, leader_epochs=1, partition_epochs=1, fencings=0, delays=0, min_isr=1)
_PAIR_OF_TWO = dataclasses.replace(_PAIR, min_isr=2)
_ALONE = dataclasses.replace(_PAIR, in_sync=1, leader_epochs=0)
"""The leader is alone in the ISR, and the other one has yet to join."""
_TWICE_FENCED = dataclasses.replace(_PAIR, leader_epochs=2, partition_epochs=2, fencings=2)
_JOINING = dataclasses.replace(_ALONE, records=2)
_DIVERGING = dataclasses.replace(_PAIR, records=2, fencings=1)
_CUT = dataclasses.replace(_PAIR, power_losses=1)


def _replication(version: str, mode: str, bounds: PartitionBounds, mutant: str | None) -> Machine:
    within = dataclasses.replace(bounds, in_sync=min(bounds.in_sync, bounds.brokers))
    return replication_machine(_without(mutant, parameters_for(version, mode, min_isr=bounds.min_isr)), within)


_EVERYWHERE = {
    partition.ANSWER_WAITS: Shown(bounds=_PAIR, depth=1, breaks="acknowledged-is-committed"),
    partition.ELECT_IN_SYNC: Shown(bounds=_TWICE_FENCED, depth=3, breaks="leader-in-isr"),
    partition.FENCED_CANNOT_JOIN: Shown(
        bounds=dataclasses.replace(_ALONE, fencings=1), depth=3, breaks="no-fenced-in-isr"
    ),
    partition.NEW_INCARNATION: Shown(bounds=_CUT, depth=5, breaks="leader-completeness"),
    partition.MAXIMAL_ISR: Shown(bounds=_JOINING, depth=4, breaks="leader-candidate-completeness"),
    partition.EXPAND_REACHES_HIGH_WATERMARK: Shown(bounds=_JOINING, depth=4, breaks="leader-candidate-completeness"),
    partition.DIVERGENCE_CHECK: Shown(bounds=_DIVERGING, depth=6, breaks="committed-reads-stable"),
    partition.HIGH_WATERMARK_WITHIN_LOG: Shown(bounds=_JOINING, depth=3, breaks="hw-within-log"),
}
_OF_KRAFT = {
    partition.EXPAND_BROKER_EPOCH: Shown(
        bounds=dataclasses.replace(_ALONE, kills=1), depth=4, breaks="only-eligible-asked-for"
    ),
    partition.HIGH_WATERMARK_RISES: Shown(bounds=_CUT, depth=7, breaks="leader-hw-monotone"),
    partition.EPOCH_OF_CHANGE: Shown(bounds=dataclasses.replace(_PAIR, fencings=1), depth=1, breaks="epochs-monotone"),
    partition.EPOCH_OF_LEADER: Shown(bounds=dataclasses.replace(_PAIR, fencings=1), depth=1, breaks="epochs-monotone"),
    partition.PARTITION_EPOCH_OF_ISR: Shown(
        bounds=dataclasses.replace(_ALONE, partition_epochs=3, fencings=1),
        depth=9,
        breaks="leader-candidate-completeness",
    ),
    partition.BROKER_EPOCH_OF_MEMBERS: Shown(
        bounds=dataclasses.replace(_ALONE, power_losses=1), depth=8, breaks="leader-candidate-completeness"
    ),
}
_BEFORE_ELR = {
    partition.HIGH_WATERMARK_GATE: Shown(
        bounds=dataclasses.replace(_PAIR_OF_TWO, fencings=1), depth=3, breaks="hw-frozen-below-min-isr"
    )
}
_CALLED = {"replicas": "brokers", "epochs": "leader_epochs"}

REPLICATION = (
    Specification(
        name="zk-3.9",
        summary="one partition with its brokers, controller and network, as Kafka 3.9 is with ZooKeeper",
        bounds=_WITH_A_CRASH,
        make=partial(_replication, "3.9.2", "zk"),
        mutants=_EVERYWHERE
        | _BEFORE_ELR
        | {
            partition.HIGH_WATERMARK_RISES: Shown(bounds=_CUT, depth=10, breaks="leader-hw-monotone"),
            partition.EXPAND_AFTER_FETCH: Shown(
                bounds=dataclasses.replace(_CUT, partition_epochs=3, fencings=1),
                depth=9,
                breaks="leader-candidate-completeness",
            ),
        },
        called=_CALLED,
    ),
    Specification(
        name="kraft-3.9",
        summary="the same with KRaft",
        bounds=_WITH_A_CRASH,
        make=partial(_replication, "3.9.2", "kraft"),
        mutants=_EVERYWHERE
        | _OF_KRAFT
        | _BEFORE_ELR
        | {
            partition.EXPAND_REACHES_EPOCH_START: Shown(
                bounds=dataclasses.replace(_PAIR_OF_TWO, partition_epochs=2, power_losses=1, delays=2),
                depth=14,
                breaks="leader-candidate-completeness",
            ),
            partition.FETCH_BROKER_EPOCH: Shown(
                bounds=dataclasses.replace(
                    _PAIR_OF_TWO, records=2, leader_epochs=0, partition_epochs=2, power_losses=1, delays=1
                ),
                depth=20,
                breaks="leader-candidate-completeness",
            ),
            partition.FETCH_LEADER_EPOCH: Shown(
                bounds=PartitionBounds(records=1, leader_epochs=2, partition_epochs=3, fencings=2, delays=0, min_isr=1),
                depth=14,
                breaks="leader-candidate-completeness",
            ),
        },
        called=_CALLED,
    ),
    Specification(
        name="kraft-4",
        summary="the same with eligible leader replicas, as Kafka 4.1 and later are",
        bounds=_WITH_A_CRASH,
        make=partial(_replication, "4.3.1", "kraft"),
        mutants=_EVERYWHERE
        | _OF_KRAFT
        | {
            partition.HIGH_WATERMARK_GATE: Shown(
                bounds=dataclasses.replace(_PAIR_OF_TWO, partition_epochs=2, fencings=1),
                depth=5,
                breaks="leader-completeness",
            ),
            partition.ELR_BELOW_MINIMUM: Shown(
                bounds=dataclasses.replace(_PAIR, partition_epochs=2, fencings=1),
                depth=5,
                breaks="leader-completeness",
            ),
            partition.ELR_FORGETS_UNCLEAN: Shown(
                bounds=dataclasses.replace(
                    _PAIR_OF_TWO,
                    leader_epochs=2,
                    partition_epochs=3,
                    fencings=1,
                    power_losses=1,
                    last_replica_falls=True,
                ),
                depth=8,
                breaks="leader-completeness",
            ),
        },
        called=_CALLED,
    ),
)

# --- The controller alone -------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ControllerBounds(standalone.Bounds):
    """Of a controller with so many brokers, all of which hold the partition."""

    brokers: int = 2
    min_isr: int = 2


_ONE_CONTROLLER = ControllerBounds(partition_epochs=4)


def _controller(version: str, mode: str, bounds: ControllerBounds, mutant: str | None) -> Machine:
    parameters = parameters_for(version, mode, min_isr=bounds.min_isr, replication=bounds.brokers)
    return standalone.machine(_without(mutant, parameters), bounds)


def _alone(depth: int, breaks: str) -> Shown:
    return Shown(bounds=_ONE_CONTROLLER, depth=depth, breaks=breaks)


CONTROLLER = (
    Specification(
        name="controller-zk-3.9",
        summary="ZooKeeper's controller, and leaders that propose any ISR: without KIP-903 candidates-proven is broken",
        bounds=ControllerBounds(moves=1),
        make=partial(_controller, "3.9.2", "zk"),
        mutants={
            partition.ELECT_IN_SYNC: _alone(2, "leader-in-isr"),
            partition.LAST_MEMBER_STAYS: _alone(2, "a-replica-may-lead"),
            partition.FENCED_CANNOT_JOIN: _alone(4, "no-fenced-member"),
        },
        called=_CALLED,
    ),
    Specification(
        name="controller-kraft-3.9",
        summary="KRaft's controller, and leaders that propose any ISR",
        bounds=ControllerBounds(moves=1),
        make=partial(_controller, "3.9.2", "kraft"),
        mutants={
            partition.ELECT_IN_SYNC: _alone(2, "leader-in-isr"),
            partition.LAST_MEMBER_STAYS: _alone(2, "a-replica-may-lead"),
            partition.FENCED_CANNOT_JOIN: _alone(4, "no-fenced-member"),
            partition.PARTITION_EPOCH_OF_ISR: _alone(3, "candidates-proven"),
            partition.BROKER_EPOCH_OF_MEMBERS: _alone(7, "candidates-proven"),
            partition.EPOCH_OF_LEADER: _alone(1, "epochs-rise"),
            partition.EPOCH_OF_CHANGE: _alone(1, "epochs-rise"),
        },
        called=_CALLED,
    ),
    Specification(
        name="controller-kraft-4",
        summary="the same with eligible leader replicas",
        bounds=ControllerBounds(moves=1),
        make=partial(_controller, "4.3.1", "kraft"),
        mutants={
            partition.ELECT_IN_SYNC: _alone(4, "leader-in-isr"),
            partition.FENCED_CANNOT_JOIN: _alone(4, "no-fenced-member"),
            partition.PARTITION_EPOCH_OF_ISR: _alone(5, "candidates-proven"),
            partition.ELR_FORGETS_UNCLEAN: _alone(3, "candidates-proven"),
            partition.ELR_BELOW_MINIMUM: Shown(
                bounds=dataclasses.replace(_ONE_CONTROLLER, min_isr=1), depth=1, breaks="valid-isr-and-elr"
            ),
            partition.LAST_KNOWN_LEADER_ACTIVE: _alone(6, "leader-is-there"),
        },
        called=_CALLED,
    ),
)

# --- Transactions ---------------------------------------------------------------------------------------------------

_ONE, _TWO, _ZOMBIE = (Transactions(transactions=each) for each in ((1, 0), (2, 0), (1, 1)))
_TIMED_OUT = dataclasses.replace(_ONE, timeouts=1)
_LAGGING = dataclasses.replace(_ONE, lagging=True, elections=1)
_LATE_MARKER = dataclasses.replace(_TWO, late=frozenset({LateRequest.MARKER}))


def _idempotence(bounds: idempotent_producer.IdempotenceBounds, mutant: str | None) -> Machine:
    return idempotent_producer.machine(_without(mutant, Parameters()), bounds)


def _transactions(version: int, bounds: Transactions, mutant: str | None) -> Machine:
    parameters = Parameters(transaction_version=version, transactions_of_4=version >= 2)
    return transactions.machine(_without(mutant, parameters), bounds)


def _without(mutant: str | None, parameters: Parameters) -> Parameters:
    return dataclasses.replace(parameters, dropped=frozenset(() if mutant is None else (mutant,)))


TRANSACTIONS = (
    Specification(
        name="idempotence",
        summary="one idempotent producer and one leader, batches in any order",
        bounds=idempotent_producer.IdempotenceBounds(batches=7, in_flight=5, elections=1),
        make=_idempotence,
        mutants={
            guards.SEQUENCE_CHECK: Shown(
                bounds=idempotent_producer.IdempotenceBounds(in_flight=2),
                depth=3,
                breaks=idempotent_producer.ONCE_IN_ORDER,
            ),
            guards.DUPLICATE_WINDOW: Shown(
                bounds=idempotent_producer.IdempotenceBounds(), depth=3, breaks=idempotent_producer.NOT_REFUSED
            ),
        },
    ),
    Specification(
        name="transactions-v0",
        summary="two producers with one transactional id, their coordinator and a partition, as before 4.0",
        bounds=_ZOMBIE,
        make=partial(_transactions, 0),
        mutants={
            guards.DUPLICATE_WINDOW: Shown(bounds=_ONE, depth=5, breaks=promises.NOT_REFUSED),
            guards.PRODUCER_EPOCH_CHECK: Shown(bounds=_ZOMBIE, depth=12, breaks=promises.SEQUENCES),
            guards.COORDINATOR_EPOCH_CHECK: Shown(
                bounds=dataclasses.replace(_TWO, coordinators=1), depth=14, breaks=promises.COMMIT_KEPT
            ),
            guards.VERIFICATION_GUARD: Shown(bounds=_ONE, depth=8, breaks=promises.LSO_NOT_STUCK),
            guards.OPEN_HOLDS_LSO: Shown(bounds=_ONE, depth=4, breaks=promises.READ_COMMITTED),
            guards.UNREPLICATED_HOLDS_LSO: Shown(bounds=_LAGGING, depth=9, breaks=promises.LSO_MONOTONE),
            guards.EPOCH_BUMP_ON_INIT: Shown(bounds=_ZOMBIE, depth=9, breaks=promises.COMMIT_KEPT),
            guards.EPOCH_BUMP_ON_FENCE: Shown(
                bounds=dataclasses.replace(_TIMED_OUT, partitions=2), depth=11, breaks=promises.COMMIT_KEPT
            ),
            guards.ABORT_ON_INIT: Shown(bounds=_ZOMBIE, depth=5, breaks=promises.LSO_NOT_STUCK),
            guards.END_EPOCH_CHECK: Shown(bounds=_ZOMBIE, depth=12, breaks=promises.COMMIT_KEPT),
            guards.ADD_WAITS_FOR_MARKERS: Shown(bounds=_TWO, depth=10, breaks=promises.COMMIT_KEPT),
            guards.COMPLETE_WAITS_FOR_MARKERS: Shown(bounds=_ONE, depth=7, breaks=promises.LSO_NOT_STUCK),
        },
    ),
    Specification(
        name="transactions-v2",
        summary="the same since 4.0: every end of a transaction raises the producer's epoch",
        bounds=_ZOMBIE,
        make=partial(_transactions, 2),
        mutants={
            guards.DUPLICATE_WINDOW: Shown(bounds=_ONE, depth=4, breaks=promises.NOT_REFUSED),
            guards.PRODUCER_EPOCH_CHECK: Shown(bounds=_LATE_MARKER, depth=11, breaks=promises.OWN_COMMIT),
            guards.MARKER_EPOCH_RISES: Shown(bounds=_LATE_MARKER, depth=11, breaks=promises.OWN_COMMIT),
            guards.OPEN_FOR_ITS_EPOCH: Shown(bounds=_TWO, depth=6, breaks=promises.LSO_NOT_STUCK),
            guards.OPEN_HOLDS_LSO: Shown(bounds=_ONE, depth=3, breaks=promises.READ_COMMITTED),
            guards.UNREPLICATED_HOLDS_LSO: Shown(bounds=_LAGGING, depth=8, breaks=promises.LSO_MONOTONE),
            guards.EPOCH_BUMP_ON_INIT: Shown(bounds=_ZOMBIE, depth=7, breaks=promises.COMMIT_KEPT),
            guards.EPOCH_BUMP_ON_FENCE: Shown(bounds=_TIMED_OUT, depth=4, breaks=promises.LSO_NOT_STUCK),
            guards.EPOCH_BUMP_ON_END: Shown(bounds=_ONE, depth=5, breaks=promises.LSO_NOT_STUCK),
            guards.ABORT_ON_INIT: Shown(bounds=_ZOMBIE, depth=4, breaks=promises.LSO_NOT_STUCK),
            guards.END_EPOCH_CHECK: Shown(bounds=_ZOMBIE, depth=11, breaks=promises.COMMIT_KEPT),
            guards.END_DIRECTION_CHECK: Shown(bounds=_TIMED_OUT, depth=9, breaks=promises.COMMIT_KEPT),
            guards.END_WAITS_FOR_MARKERS: Shown(bounds=_ONE, depth=5, breaks=promises.NOT_FENCED),
            guards.END_MAY_BE_REPEATED: Shown(bounds=_ONE, depth=6, breaks=promises.NOT_FENCED),
            guards.ADD_WAITS_BEFORE_IDENTITY: Shown(
                bounds=dataclasses.replace(_TWO, timeouts=1, first_epoch=LAST_EPOCH - 1),
                depth=5,
                breaks=promises.NOT_FENCED,
            ),
            guards.ADD_EPOCH_CHECK: Shown(bounds=_ZOMBIE, depth=9, breaks=promises.OWN_COMMIT),
            guards.ADD_WAITS_FOR_MARKERS: Shown(bounds=_TWO, depth=9, breaks=promises.COMMIT_KEPT),
            guards.COMPLETE_WAITS_FOR_MARKERS: Shown(bounds=_ONE, depth=6, breaks=promises.LSO_NOT_STUCK),
        },
    ),
)

# --- Groups ---------------------------------------------------------------------------------------------------------

_TWINS = (("a", "x"), ("b", "x"))
_STATIC_AND_DYNAMIC = (("a", "x"), ("b", None))
_B_STEADY = frozenset("b")
_Classic, _Consumer = classic_machine.ClassicBounds, consumer_machine.ConsumerBounds
_COMMITS = _Consumer(partitions=1, commits=True, steady=_B_STEADY)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PendingBounds:
    """Of transactional offset commits."""

    producers: int = 2
    commits: int = 4


def _group(mutant: str | None) -> GroupParameters:
    dropped = frozenset(() if mutant is None else (mutant,))
    return dataclasses.replace(group_parameters_for("4.3.1"), initial_epoch=0, dropped=dropped)


def _classic(bounds: classic_machine.ClassicBounds, mutant: str | None) -> Machine:
    return classic_machine.classic_machine(_group(mutant), bounds)


def _consumer(bounds: consumer_machine.ConsumerBounds, mutant: str | None) -> Machine:
    return consumer_machine.consumer_machine(_group(mutant), bounds)


def _pending(bounds: PendingBounds, mutant: str | None) -> Machine:
    return pending_machine.pending_machine(_group(mutant), producers=bounds.producers, commits=bounds.commits)


GROUPS = (
    Specification(
        name="classic-group",
        summary="two consumers in the classic protocol that stall, crash and come back",
        bounds=_Classic(),
        make=_classic,
        mutants={
            groups.JOIN_WAITS_FOR_MEMBERS: Shown(
                bounds=_Classic(partitions=1, commits=True), depth=13, breaks=classic_machine.ZOMBIES_WERE_PUT_OUT
            ),
            groups.SIMPLE_WHEN_EMPTY: Shown(
                bounds=_Classic(partitions=1, commits=True), depth=10, breaks=classic_machine.COMMITS_RISE
            ),
            groups.NEW_ID_FOR_INSTANCE: Shown(
                bounds=_Classic(consumers=_TWINS, commits=True), depth=9, breaks=classic_machine.TWO_OWNERS
            ),
            groups.MEMBER_OF_COMMIT: Shown(
                bounds=_Classic(consumers=_TWINS, commits=True), depth=13, breaks=classic_machine.COMMITS_RISE
            ),
            groups.GENERATION_OF_HEARTBEAT: Shown(
                bounds=_Classic(consumers=_STATIC_AND_DYNAMIC, partitions=1, commits=True),
                depth=12,
                breaks=classic_machine.TWO_OWNERS,
            ),
            groups.GENERATION_OF_COMMIT: Shown(
                bounds=_Classic(consumers=_STATIC_AND_DYNAMIC, partitions=1, commits=True),
                depth=16,
                breaks=classic_machine.COMMITS_RISE,
            ),
        },
    ),
    Specification(
        name="consumer-group",
        summary="two consumers in the protocol of KIP-848, whose heartbeats are delayed, lost and repeated",
        bounds=_Consumer(),
        make=_consumer,
        mutants={
            groups.REVOKE_BEFORE_ADVANCE: Shown(
                bounds=_Consumer(), depth=13, breaks=consumer_machine.NO_DOUBLE_CLIENT_ASSIGNMENT
            ),
            groups.RELEASE_BEFORE_ASSIGN: Shown(
                bounds=_Consumer(), depth=8, breaks=consumer_machine.NO_DOUBLE_CLIENT_ASSIGNMENT
            ),
            groups.EPOCH_OF_HEARTBEAT: Shown(
                bounds=_Consumer(epochs=4, partitions=1, late=consumer_machine.LateHeartbeats.FENCED, steady=_B_STEADY),
                depth=18,
                breaks=consumer_machine.OWNED_IS_HELD,
            ),
            groups.INSTANCE_RELEASED: Shown(
                bounds=_Consumer(consumers=_TWINS, ids=2, partitions=1),
                depth=4,
                breaks=consumer_machine.INSTANCES_ARE_RELEASED,
            ),
            groups.MEMBER_OF_COMMIT: Shown(bounds=_COMMITS, depth=11, breaks=consumer_machine.COMMITS_RISE),
            groups.EPOCH_OF_COMMIT: Shown(bounds=_COMMITS, depth=16, breaks=consumer_machine.COMMITS_RISE),
            groups.ASSIGNMENT_EPOCH_OF_COMMIT: Shown(bounds=_COMMITS, depth=16, breaks=consumer_machine.COMMITS_RISE),
        },
    ),
    Specification(
        name="pending-offsets",
        summary="offsets that two transactional producers commit, and a consumer that fetches them",
        bounds=PendingBounds(),
        make=_pending,
        mutants={
            groups.PENDING_UNTIL_MARKER: Shown(
                bounds=PendingBounds(), depth=2, breaks=pending_machine.ONLY_COMMITTED_IS_READ
            ),
            groups.UNSTABLE_WHILE_PENDING: Shown(
                bounds=PendingBounds(), depth=3, breaks=pending_machine.STABLE_IS_NEWEST
            ),
            groups.ABORT_DROPS_PENDING: Shown(
                bounds=PendingBounds(), depth=3, breaks=pending_machine.ONLY_COMMITTED_COUNTS
            ),
            groups.NEWEST_RECORD_STAYS: Shown(bounds=PendingBounds(), depth=4, breaks=pending_machine.NEWEST_COUNTS),
        },
    ),
)
