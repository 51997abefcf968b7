"""One partition explored: what holds within which bounds, and what does not."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from lockstep.exploration.ours import REPLICATION
from lockstep.exploration.specification import Specification
from lockstep_model.controller import Controller
from lockstep_model.parameters import Parameters, parameters_for
from lockstep_model.partition.replica import HostedPartition
from lockstep_model.replication.invariants import invariants
from lockstep_model.replication.machine import replication_machine
from lockstep_model.replication.state import Bounds, ReplicationLayout
from lockstep_model.search import explore, names_of
from lockstep_model.state_machine import Action
from tests.reference_model.walks import follow, process

ZK = parameters_for("3.9.2", "zk", min_isr=2)
KRAFT = parameters_for("3.9.2", "kraft", min_isr=2)
ELR = parameters_for("4.3.1", "kraft", min_isr=2)

TWO = Bounds(brokers=2, in_sync=2, records=2, leader_epochs=1, partition_epochs=2, fencings=1, delays=1)
KILLED = replace(TWO, records=1, leader_epochs=2, fencings=0, kills=1)
SHUT_DOWN = replace(TWO, records=1, leader_epochs=2, shutdowns=1, fencings=0, preferred_elections=1)
CUT = replace(TWO, records=1, fencings=0, power_losses=1)
THREE = Bounds(records=1, leader_epochs=1, partition_epochs=2, fencings=0, delays=0)


@pytest.mark.parametrize("bounds", [TWO, KILLED, SHUT_DOWN, THREE], ids=["two", "killed", "shut-down", "three"])
@pytest.mark.parametrize("parameters", [ZK, KRAFT, ELR], ids=["zk", "kraft", "elr"])
def test_every_invariant_holds(parameters: Parameters, bounds: Bounds) -> None:
    exploration = explore(replication_machine(parameters, bounds))

    assert exploration.complete
    assert exploration.violations == {}


@pytest.mark.parametrize("bounds", [KILLED, SHUT_DOWN], ids=["killed", "shut-down"])
@pytest.mark.parametrize("parameters", [ZK, KRAFT, ELR], ids=["zk", "kraft", "elr"])
def test_every_invariant_holds_where_one_replica_is_enough(parameters: Parameters, bounds: Bounds) -> None:
    exploration = explore(replication_machine(replace(parameters, min_isr=1), bounds))

    assert exploration.complete
    assert exploration.violations == {}


STATES = {"zk-3.9": 911_875, "kraft-3.9": 989_798, "kraft-4": 822_416}


@pytest.mark.long
@pytest.mark.parametrize("specification", REPLICATION, ids=STATES)
def test_every_invariant_holds_within_the_default_bounds(specification: Specification) -> None:
    """Another number of states is another model."""
    exploration = explore(specification.make(specification.bounds, None))

    assert exploration.violations == {}
    assert exploration.states == STATES[specification.name]


FENCED = Bounds(records=1, leader_epochs=1, partition_epochs=3, fencings=1, delays=1)
TWICE_FENCED = Bounds(records=1, leader_epochs=2, partition_epochs=3, fencings=2, delays=0)
THREE_CUT = Bounds(leader_epochs=2, partition_epochs=3, fencings=0, power_losses=1, delays=0)
DEEPER = replace(TWO, leader_epochs=2, partition_epochs=4, kills=1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("parameters", "bounds"),
    [
        *((parameters, bounds) for parameters in (ZK, KRAFT, ELR) for bounds in (FENCED, TWICE_FENCED, DEEPER)),
        (KRAFT, THREE_CUT),
        (ELR, THREE_CUT),
    ],
)
def test_every_invariant_holds_within_other_bounds(parameters: Parameters, bounds: Bounds) -> None:
    exploration = explore(replication_machine(parameters, bounds))

    assert exploration.complete
    assert exploration.violations == {}


@pytest.mark.parametrize("mode", ["zk", "kraft"])
def test_every_invariant_holds_before_the_gate(mode: str) -> None:
    """Kafka 3.6, where the high watermark moves below min.insync.replicas too."""
    parameters = parameters_for("3.6.2", mode, min_isr=2)

    assert explore(replication_machine(parameters, replace(TWO, records=1, kills=1, delays=0))).violations == {}


@pytest.mark.parametrize("parameters", [ZK, KRAFT, ELR], ids=["zk", "kraft", "elr"])
def test_what_unclean_elections_cost(parameters: Parameters) -> None:
    """All but what is not promised with them holds; what is not promised does not."""
    bounds = replace(TWO, records=1, leader_epochs=2, partition_epochs=2, fencings=2, delays=0)
    machine = replication_machine(replace(parameters, unclean=True, min_isr=1), bounds)
    promised_otherwise = tuple(invariants(replace(parameters, min_isr=1), ReplicationLayout(2)))

    assert explore(machine).violations == {}
    assert "leader-completeness" in explore(replace(machine, invariants=promised_otherwise)).violations


@pytest.mark.parametrize("parameters", [KRAFT, ELR], ids=["kraft", "elr"])
def test_a_broker_that_lost_the_end_of_its_log_harms_nobody_in_kraft(parameters: Parameters) -> None:
    assert explore(replication_machine(parameters, CUT)).violations == {}


def test_zookeeper_lets_a_broker_into_the_isr_that_restarted_since_it_was_seen() -> None:
    """What KIP-903 is for, which only KRaft has."""
    joining = Bounds(
        brokers=2, in_sync=1, records=1, leader_epochs=0, partition_epochs=1, fencings=0, power_losses=1, delays=0
    )
    one = replace(ZK, min_isr=1)

    violation = explore(replication_machine(one, joining)).violations["leader-candidate-completeness"]

    assert violation.trace[-4:] == (
        "1 loses power",
        "the session of 1 ends",
        "1 starts",
        "the controller answers the AlterPartition of 0",
    )
    assert explore(replication_machine(replace(KRAFT, min_isr=1), joining)).violations == {}


FORGOTTEN = (
    "a record is written to 0",
    "a record is written to 0",
    "the lag time passes for 1 on 0",
    "2 fetches from 0",
    "the controller answers the AlterPartition of 0",
    "the answer to the AlterPartition of 0 arrives",
    "1 fetches from 0",  # 0 asks for 1 in the ISR
    "0 learns what the controller decided",  # of its first request, and forgets the second
    "2 fetches from 0",
    "2 fetches from 0",  # 0 commits what 1 lacks
    "the controller answers the AlterPartition of 0",
)


def test_a_leader_that_forgets_what_it_asked_for_commits_what_a_member_of_the_isr_lacks() -> None:
    """Metadata tells a KRaft leader what the answer to its AlterPartition told, after it has asked for something else.

    Kafka takes it for news, and waits for the follower no longer, which the controller has in the ISR
    (Partition.makeLeader, 3.9.2 and 4.3.1). In time is before it asks again.
    """
    bounds = Bounds(records=2, leader_epochs=0, partition_epochs=2, fencings=0, delays=0, prompt=False)
    for parameters in (KRAFT, ELR):
        machine = replication_machine(parameters, bounds)
        assert machine.broken(follow(machine, *FORGOTTEN)) >= {"leader-candidate-completeness"}
    in_time = replication_machine(KRAFT, replace(bounds, prompt=True))
    told = follow(in_time, *FORGOTTEN[:6], FORGOTTEN[7], FORGOTTEN[6], *FORGOTTEN[8:])
    assert in_time.broken(told) == set()
    assert in_time.apply(follow(in_time, *FORGOTTEN[:8]), Action(FORGOTTEN[-1])) is None


def test_who_waits_for_acks_is_told_when_it_is_committed_or_never() -> None:
    machine = replication_machine(KRAFT, Bounds(records=1, leader_epochs=1, fencings=1, delays=0))
    written = follow(machine, "a record is written to 0")
    assert [value for value, _ in process(written, 0).waiting] == [0]
    fetched = follow(machine, "a record is written to 0", *["1 fetches from 0"] * 2, *["2 fetches from 0"] * 2)
    assert (process(fetched, 0).waiting, fetched[ReplicationLayout.WITNESS].acknowledged) == ((), {0})
    deposed = follow(
        machine, "a record is written to 0", "the session of 0 ends", "0 learns what the controller decided"
    )
    assert (process(deposed, 0).waiting, deposed[ReplicationLayout.WITNESS].acknowledged) == ((), set())


def test_where_the_isr_is_too_small_nobody_waits() -> None:
    machine = replication_machine(KRAFT, Bounds(in_sync=1, records=1, fencings=0, delays=0))
    written = follow(machine, "a record is written to 0")
    assert (process(written, 0).replica.log.end, process(written, 0).waiting) == (1, ())


LEAVING = Bounds(records=0, leader_epochs=3, partition_epochs=4, fencings=0, delays=0, shutdowns=1)


@pytest.mark.parametrize("parameters", [KRAFT, ELR], ids=["kraft", "elr"])
def test_a_leader_leaves_when_all_know_that_it_does(parameters: Parameters) -> None:
    """It asks, another one leads, and it is let go once the others have read so; then it is fenced."""
    machine = replication_machine(parameters, LEAVING)
    asks, leaves = Action("0 asks to shut down"), Action("0 leaves")
    asked = follow(machine, asks.rule)
    controller: Controller = asked[ReplicationLayout.METADATA].controller
    registered = controller.broker(0)
    assert (controller.partition.leader, controller.partition.isr) == (1, frozenset({1, 2}))
    assert registered is not None
    assert (registered.shutting_down, registered.fenced) == (True, False)
    assert process(asked, 0).leaving
    assert machine.apply(asked, leaves) is None
    again = machine.apply(asked, asks)
    assert again is None or again[ReplicationLayout.METADATA].controller == controller  # the others do not know yet

    known = follow(machine, asks.rule, *(f"{b} learns what the controller decided" for b in (1, 2)), asks.rule)
    fenced = known[ReplicationLayout.METADATA].controller.broker(0)
    assert fenced is not None
    assert fenced.fenced
    gone = machine.apply(known, leaves)
    assert gone is not None
    assert (process(gone, 0).running, process(gone, 0).clean) == (False, True)


def test_with_zookeeper_a_broker_leaves_with_its_session() -> None:
    machine = replication_machine(ZK, LEAVING)
    gone = follow(machine, "1 asks to shut down", "1 leaves")
    assert machine.apply(gone, Action("1 starts")) is None
    assert machine.apply(gone, Action("the session of 1 ends")) is not None


def test_with_zookeeper_a_broker_that_has_just_started_knows_nothing() -> None:
    bounds = replace(LEAVING, shutdowns=0, kills=1)
    steps = ("1 is killed", "the session of 1 ends", "1 starts")
    machine = replication_machine(ZK, bounds)
    started = follow(machine, *steps)
    assert process(started, 1).replica.hosting is HostedPartition.UNKNOWN
    assert machine.apply(started, Action("1 fetches from 0")) is None
    told = machine.apply(started, Action("1 learns what the controller decided"))
    assert told is not None
    assert process(told, 1).replica.leader == 0
    in_kraft = replication_machine(KRAFT, bounds)
    assert process(follow(in_kraft, *steps), 1).replica.leader == 0


@pytest.mark.parametrize("end", ["is killed", "loses power"])
def test_a_crash_leaves_any_high_watermark_that_was_before(end: str) -> None:
    """The last one that was checkpointed, which happens every few seconds."""
    bounds = Bounds(brokers=1, in_sync=1, records=3, fencings=0, kills=1, power_losses=1, last_replica_falls=True)
    machine = replication_machine(replace(KRAFT, min_isr=1), bounds)
    state = follow(machine, *["a record is written to 0"] * 3)
    left = {
        (replica.log.end, replica.high_watermark)
        for action, after in machine.enabled(state)
        if action.rule == f"0 {end}"
        for replica in [process(after, 0).replica]
    }
    whole = {(3, high_watermark) for high_watermark in range(4)}
    assert left == whole if end == "is killed" else {(end, at) for end in range(3) for at in range(end + 1)}


LAST = replace(TWO, records=1, leader_epochs=2, partition_epochs=3, delays=0, power_losses=1, last_replica_falls=True)
"""Power losses may hit the last member of the ISR."""


def test_the_last_replica_standing() -> None:
    """Without eligible leader replicas its loss is everybody's; with them, fewer than two losses are nobody's."""
    lost = explore(replication_machine(KRAFT, LAST)).violations["leader-completeness"]

    assert lost.depth == 8
    assert sum("loses power" in step for step in lost.trace) == 1
    assert explore(replication_machine(ELR, LAST)).violations == {}


@pytest.mark.long
def test_as_many_losses_as_the_minimum_are_too_many() -> None:
    """The published specification says the same of unclean shutdowns (Vanlightly, kip-966)."""
    twice = replace(LAST, leader_epochs=3, partition_epochs=4, power_losses=2)

    assert "leader-completeness" in explore(replication_machine(ELR, twice)).violations


SKIPPED = (
    "the preferred leader is elected",
    "the session of 0 ends",
    "0 learns what the controller decided",
    "a record is written to 1",
    "2 fetches from 1",
    "2 fetches from 1",
    "1 learns what the controller decided",
    "2 learns what the controller decided",
    "2 fetches from 0",
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("parameters", "batches"), [(ZK, False), (KRAFT, True), (KRAFT, False)], ids=["zk", "batches", "in-order"]
)
def test_a_leader_that_missed_another_one_counts_what_it_knew_before(parameters: Parameters, batches: bool) -> None:
    """Broker 1 leads again two epochs later and never heard of the leader between: it counts 2 as far as it had fetched
    before, which 2 truncates when it hears of it. Kafka keeps what a leader knew of its followers if it leads already
    (Replica.resetReplicaState), and metadata that is read at once is one change (MetadataLoader)."""
    bounds = Bounds(
        leader=1,
        records=1,
        leader_epochs=2,
        partition_epochs=2,
        fencings=1,
        delays=0,
        preferred_elections=1,
        batches=batches,
    )

    violations = explore(replication_machine(parameters, bounds), depth=len(SKIPPED)).violations

    if parameters is KRAFT and not batches:
        assert violations == {}
    else:
        assert violations["leader-candidate-completeness"].trace == SKIPPED


@pytest.mark.parametrize("parameters", [ZK, KRAFT, ELR], ids=["zk", "kraft", "elr"])
def test_every_rule_happens_and_leaves_parts_of_their_kinds(parameters: Parameters) -> None:
    """On random walks, where only a mutant's rule never happens."""
    bounds = replace(
        TWO,
        records=3,
        leader_epochs=9,
        partition_epochs=9,
        fencings=3,
        shutdowns=1,
        kills=1,
        power_losses=1,
        preferred_elections=1,
        last_replica_falls=True,
    )
    machine, chance = replication_machine(parameters, bounds), random.Random(7)
    kinds = [type(part) for part in machine.initial[:5]]
    happened = set()
    for _ in range(120):
        state = machine.initial
        for _ in range(50):
            choices = list(machine.enabled(state))
            if not choices:  # all are down, and the bounds leave no epoch for any to come back
                break
            action, after = chance.choice(choices)
            assert machine.apply(state, action) == after
            assert [type(part) for part in after[:5]] == kinds
            happened.add(action.rule)
            state = after
    unfetched = {f"{b} asks for an ISR with those that it knew" for b in range(2)}
    assert {rule.name for rule in machine.rules} - happened == unfetched


def test_what_is_looked_at() -> None:
    promised = {
        "leader-in-isr",
        "hw-within-log",
        "epochs-monotone",
        "leader-candidate-completeness",
        "leader-completeness",
        "log-matching",
        "maximal-isr-superset",
        "committed-reads-stable",
        "leader-hw-monotone",
        "hw-frozen-below-min-isr",
        "no-fenced-in-isr",
        "only-eligible-asked-for",
        "acknowledged-is-committed",
    }
    not_with_unclean = {
        "leader-candidate-completeness",
        "leader-completeness",
        "log-matching",
        "committed-reads-stable",
    }
    for parameters, missing in (
        (KRAFT, set[str]()),
        (replace(KRAFT, hw_gate=False), {"hw-frozen-below-min-isr"}),
        (replace(KRAFT, unclean=True), not_with_unclean),
    ):
        assert set(names_of(replication_machine(parameters, TWO))) == promised - missing
