"""Leaders and ISRs of each partition over time: faults are drawn from a seed, their consequences come from the model.

A run is cut into rounds. In each of them one fault hits one broker; the controller of the reference model decides the
leader and the ISR. Before a round ends, all brokers are back in the ISR, and the cluster is calm until the next.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from lockstep.history.lines import CRASHED
from lockstep_model.controller import (
    Controller,
    alter_partition,
    create,
    elect_preferred,
    fence,
    register,
    shut_down,
    unfence,
)
from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters, parameters_for
from lockstep_model.registration import AlterPartition, BrokerId, Register, Registration

Ints: TypeAlias = npt.NDArray[np.int64]

MS = 1_000_000
SECOND = 1_000_000_000

KAFKA, MODE, BROKERS, MIN_ISR = "4.3.1", "kraft", (1, 2, 3), 2
PARAMETERS: Parameters = parameters_for(KAFKA, MODE, min_isr=MIN_ISR, replication=len(BROKERS))

_ROUND_NS = 15 * SECOND
_ROUNDS = (2, 64)
_CALM = 0.75
"""The part of a round after which it is calm."""


class Reign(NamedTuple):
    """A partition as the controller had it, from `start_ns` on."""

    start_ns: int
    leader: BrokerId
    leader_epoch: int
    partition_epoch: int
    isr: tuple[BrokerId, ...]
    elr: tuple[BrokerId, ...]


class Gap(NamedTuple):
    """A time in which the high watermark of a partition stands still.

    In an outage the partition has no leader. In a stall a member of the ISR does not fetch, so appended records are not
    committed until it has left the ISR.
    """

    start_ns: int
    end_ns: int
    lost_from_ns: int
    """Records that are appended from here on and not replicated are not in the log of the next leader."""

    @property
    def settled_ns(self) -> int:
        """Until then there is more to do than usual."""
        return self.end_ns + (self.end_ns - self.start_ns) // 10 + 20 * MS


class FaultEvent(NamedTuple):
    """One row of the faults."""

    time_ns: int
    step: int
    fault: str
    asked: tuple[str, int]
    """leader or follower, and of which partition"""
    resolved: str
    phase: str
    proof: dict[str, Any] | None


class Delays(NamedTuple):
    """A monotone map of time: events within a gap are moved to right after it, in the same order."""

    at: tuple[int, ...]
    to: tuple[int, ...]

    @classmethod
    def of(cls, spans: Sequence[tuple[int, int, int]]) -> Delays:
        """Each span: from when, until when nothing happens, and when all that waited is done."""
        knots = [(0, 0)]
        for start_ns, end_ns, settled_ns in sorted(spans):
            knots += [(start_ns, start_ns), (start_ns + 1, end_ns), (settled_ns, settled_ns)]
        knots.append((1 << 52, 1 << 52))
        at, to = zip(*knots, strict=True)
        return cls(at, to)

    def __call__(self, time_ns: Ints) -> Ints:
        moved: Ints = np.interp(time_ns, np.array(self.at), np.array(self.to)).astype(np.int64)
        return moved

    def one(self, time_ns: int) -> int:
        after = bisect_right(self.at, time_ns)
        before, left = self.at[after - 1], self.to[after - 1]
        return left + (time_ns - before) * (self.to[after] - left) // (self.at[after] - before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The leaders, outages and stalls of one partition."""

    reigns: tuple[Reign, ...]
    outages: tuple[Gap, ...]
    stalls: tuple[Gap, ...]
    appends: Delays
    commits: Delays
    """Delays of commits and so of responses: a dead leader sends none, and the next leader answers the retries."""

    @classmethod
    def of(cls, reigns: Sequence[Reign], outages: Sequence[Gap], stalls: Sequence[Gap]) -> Timeline:
        return cls(
            reigns=tuple(reigns),
            outages=tuple(outages),
            stalls=tuple(stalls),
            appends=Delays.of([(outage.lost_from_ns, outage.end_ns, outage.settled_ns) for outage in outages]),
            commits=Delays.of([(gap.start_ns, gap.end_ns, gap.settled_ns) for gap in (*outages, *stalls)]),
        )


class Round(NamedTuple):
    """One fault and the calm after it."""

    start_ns: int
    calm_ns: int
    end_ns: int


@dataclass(slots=True, kw_only=True)
class _Partition:
    """A partition while its history is drawn."""

    controller: Controller
    reigns: list[Reign]
    outages: list[Gap] = field(default_factory=list)
    stalls: list[Gap] = field(default_factory=list)

    @property
    def registration(self) -> Registration:
        return self.controller.partition

    def becomes(self, controller: Controller, time_ns: int) -> None:
        """The controller has decided this; what brokers learn of is a reign."""
        if controller.partition != self.controller.partition:
            self.reigns.append(_reign(controller.partition, time_ns))
        self.controller = controller


def _reign(partition: Registration, time_ns: int) -> Reign:
    return Reign(
        time_ns,
        partition.leader,
        partition.leader_epoch,
        partition.partition_epoch,
        tuple(sorted(partition.isr)),
        tuple(sorted(partition.elr)),
    )


class Story:
    """The walk: `tell` it round by round."""

    def __init__(self, chance: random.Random, partitions: int) -> None:
        self._chance = chance
        self._epoch = 0
        """Of broker registrations: KRaft takes the offset of their record."""
        self.partitions = [self._created(number) for number in range(partitions)]
        self.faults: list[FaultEvent] = []

    def _created(self, number: int) -> _Partition:
        controller = Controller()
        for broker in BROKERS:
            self._epoch += 1
            controller, error = register(PARAMETERS, controller, Register(broker, self._epoch))
            _require(error)
            controller = unfence(PARAMETERS, controller, broker)
        first = number % len(BROKERS)
        controller, error = create(PARAMETERS, controller, BROKERS[first:] + BROKERS[:first])
        _require(error)
        return _Partition(controller=controller, reigns=[_reign(controller.partition, 0)])

    def timelines(self) -> tuple[Timeline, ...]:
        return tuple(Timeline.of(one.reigns, one.outages, one.stalls) for one in self.partitions)

    def tell(self, step: int, around: Round) -> None:
        """One fault, its consequences, and its end, all before the calm."""
        active_ns = around.calm_ns - around.start_ns
        start_ns = around.start_ns + int(active_ns * self._chance.uniform(0.02, 0.1))
        noticed_ns = start_ns + int(min(active_ns * 0.3, SECOND * self._chance.uniform(1, 9)))
        healed_ns = noticed_ns + int(active_ns * self._chance.uniform(0.2, 0.25))
        number = 0 if step == 0 else self._chance.randrange(len(self.partitions))
        fault = "kill" if step == 0 else self._chance.choice(("kill", "kill", "pause", "stop", "replication-cut"))
        registration = self.partitions[number].registration
        leader = fault != "replication-cut"
        broker = registration.leader if leader else min(registration.isr - {registration.leader})
        asked = ("leader" if leader else "follower", number)
        if fault == "replication-cut":
            self._falls_behind(broker, start_ns, noticed_ns)
        elif fault == "stop":
            self._leaves(broker, start_ns)
        else:
            self._falls_silent(broker, start_ns, noticed_ns)
        proof = self._proof(fault, broker, number)
        name = f"broker-{broker}"
        self.faults.append(FaultEvent(start_ns, step, fault, asked, name, "inject", proof))
        back_ns = self._comes_back(broker, healed_ns, fault)
        self.faults.append(FaultEvent(back_ns, step, fault, asked, name, "healed", None))

    def _proof(self, fault: str, broker: BrokerId, number: int) -> dict[str, Any]:
        after = self.partitions[number].registration
        found: dict[str, Any] = {"isr_after": sorted(after.isr), "leader_after": after.leader}
        return found | ({CRASHED: [f"broker-{broker}"]} if fault == "kill" else {})

    def _falls_silent(self, broker: BrokerId, start_ns: int, noticed_ns: int) -> None:
        """Killed or paused: until its session is over its partitions have no leader, and the others wait for it."""
        for one in self.partitions:
            before = one.registration
            elected_ns = noticed_ns + self._chance.randrange(MS, 30 * MS)
            one.becomes(fence(PARAMETERS, one.controller, broker), elected_ns)
            if before.leader == broker:
                lost_ns = self._chance.choice((0, self._chance.randrange(4 * MS, 20 * MS)))
                one.outages.append(Gap(start_ns, elected_ns, start_ns - lost_ns))
            else:
                one.stalls.append(Gap(start_ns, elected_ns, start_ns))

    def _leaves(self, broker: BrokerId, start_ns: int) -> None:
        """A controlled shutdown moves what it leads first, which takes a moment."""
        for one in self.partitions:
            before = one.registration
            known = one.controller.broker(broker)
            assert known is not None
            moved_ns = start_ns + self._chance.randrange(5 * MS, 40 * MS)
            controller, answer = shut_down(PARAMETERS, one.controller, broker, known.epoch)
            while not answer.granted:
                controller, answer = shut_down(PARAMETERS, controller, broker, known.epoch)
                _require(answer.error)
            one.becomes(controller, moved_ns)
            if before.leader == broker:
                one.outages.append(Gap(start_ns, moved_ns, start_ns))

    def _falls_behind(self, broker: BrokerId, start_ns: int, noticed_ns: int) -> None:
        """Its fetches are cut: leaders wait for it for the lag time, then ask for an ISR without it."""
        for one in self.partitions:
            if one.registration.leader != broker:
                removed_ns = noticed_ns + self._chance.randrange(MS, 50 * MS)
                self._alter(one, one.registration.isr - {broker}, removed_ns)
                one.stalls.append(Gap(start_ns, removed_ns, start_ns))

    def _comes_back(self, broker: BrokerId, healed_ns: int, fault: str) -> int:
        """Until it is in every ISR again, and leads what it is preferred for; returns when that is."""
        self._epoch += 1
        ready_ns = healed_ns
        for one in self.partitions:
            known = one.controller.broker(broker)
            assert known is not None
            controller = one.controller
            if fault in ("kill", "stop"):
                ended = known.epoch if fault == "stop" else -1
                request = Register(broker, self._epoch, incarnation=self._epoch, previous_epoch=ended)
                controller, error = register(PARAMETERS, controller, request, session_over=True)
                _require(error)
            one.becomes(unfence(PARAMETERS, controller, broker), healed_ns)
            caught_up_ns = healed_ns + self._chance.randrange(100 * MS, 400 * MS)
            if broker not in one.registration.isr:
                self._alter(one, one.registration.isr | {broker}, caught_up_ns)
            ready_ns = max(ready_ns, caught_up_ns)
        for one in self.partitions:
            if one.registration.leader != one.registration.replicas[0]:
                self._prefer(one, ready_ns + self._chance.randrange(50 * MS, 200 * MS))
        return ready_ns

    def _prefer(self, one: _Partition, time_ns: int) -> None:
        controller, error = elect_preferred(PARAMETERS, one.controller)
        _require(error)
        moved_ns = time_ns + self._chance.randrange(2 * MS, 20 * MS)
        one.becomes(controller, moved_ns)
        one.outages.append(Gap(time_ns, moved_ns, time_ns))

    def _alter(self, one: _Partition, isr: frozenset[BrokerId], time_ns: int) -> None:
        partition = one.registration
        leader = one.controller.broker(partition.leader)
        assert leader is not None
        request = AlterPartition(
            broker=partition.leader,
            broker_epoch=leader.epoch,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            isr=isr,
        )
        controller, error = alter_partition(PARAMETERS, one.controller, request)
        _require(error)
        one.becomes(controller, time_ns)


def _require(error: Error) -> None:
    assert error is Error.NONE, error.name


def rounds(start_ns: int, end_ns: int) -> tuple[Round, ...]:
    """As many as there is time for; each is as long as the others."""
    fewest, most = _ROUNDS
    number = min(max((end_ns - start_ns) // _ROUND_NS, fewest), most)
    length_ns = (end_ns - start_ns) // number
    starts = [start_ns + index * length_ns for index in range(number)]
    return tuple(Round(start, start + int(length_ns * _CALM), start + length_ns) for start in starts)
