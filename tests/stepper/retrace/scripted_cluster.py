"""A cluster that is only a few dictionaries, and does at once whatever it is led to.

With it every counterexample can be played without a cluster, and one that takes a bad turn shows that it is noticed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lockstep.stepper.conformance.script import Setting
from lockstep.stepper.driver.actions import (
    Ask,
    AskEpochEnd,
    Crash,
    Cut,
    Elect,
    Kill,
    Mend,
    Read,
    Reassign,
    Release,
    Start,
    Step,
    Talk,
    Wait,
    Withhold,
    Write,
)
from lockstep.stepper.driver.driver import Done
from lockstep.stepper.driver.situation import Situation
from lockstep.stepper.driver.timeouts import NOT_YET
from lockstep.stepper.model.client_requests import FetchResponse
from lockstep.stepper.model.controller_inference import Occasions
from lockstep.stepper.model.events import Began, Decided, Events, Exchanged, Named
from lockstep.stepper.retrace.performer import Performance
from lockstep_model.controller import Controller
from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.fetch import Fetch, Isolation
from lockstep_model.partition.offsets import EndOfEpoch, Listed
from lockstep_model.partition.produce import Produced
from lockstep_model.registration import BrokerRegistration, Registration

Records = tuple[tuple[int, int], ...]


@dataclass(kw_only=True)
class ScriptedCluster:
    """Brokers 1 and up, all of them replicas."""

    brokers: int
    min_isr: int
    truncates: bool = True
    """Whether a follower cuts off what its leader does not have."""
    remembers: bool = False
    """Whether a leader that has not heard of the one in between goes on with how far its followers were before."""

    def __post_init__(self) -> None:
        self.ids = tuple(range(1, self.brokers + 1))
        self.replicas = self.ids
        self.leader, self.leader_epoch, self.partition_epoch = 1, 0, 0
        self.isr = frozenset(self.ids)
        self.logs: dict[int, Records] = dict.fromkeys(self.ids, ())
        self.high_watermarks = dict.fromkeys(self.ids, 0)
        self.known = dict.fromkeys(self.ids, 0)
        self.follows = dict.fromkeys(self.ids, 1)
        self.running = set(self.ids)
        self.fetched: dict[tuple[int, int], int] = {}
        """How far a leader knows its followers to be."""
        self.cut: set[tuple[int, int]] = set()
        self.withheld: set[tuple[int, Talk]] = set()
        self.written = 0
        self.steps: list[Step] = []
        self.events: list[Events] = [Began(controller=self.controller(), ids=self.ids)]

    def play(self, performance: Performance, parameters: Parameters) -> None:
        """Take all steps of a performance."""
        script = performance.script(Setting(parameters=parameters, lag_ms=1000), self.situation())
        step = next(script)
        while True:
            self.steps.append(step)
            seen, reply = self.take(step)
            self.happen()
            done = Done(step=step, seen=seen, reply=reply, decisions=(), explained=(), events=0, belief=1, took_ns=1)
            try:
                step = script.send((self.situation(), done))
            except StopIteration:
                return

    def take(self, step: Step) -> tuple[str, Any]:
        match step:
            case Write():
                return self.write(step)
            case Read():
                return "read", self.read(step)
            case Ask():
                return "asked", Listed(Error.NONE, len(self.logs[step.broker]), 0)
            case AskEpochEnd():
                return "asked", EndOfEpoch(self.epoch_error(step.broker, step.leader_epoch or 0))
            case Kill() | Crash():
                self.running.discard(step.broker)
                if isinstance(step, Crash):
                    self.logs[step.broker] = self.logs[step.broker][: step.end]
                    self.high_watermarks[step.broker] = min(self.high_watermarks[step.broker], step.end)
            case Start():
                self.running.add(step.broker)
            case Cut():
                self.cut.add((step.follower, step.leader))
            case Mend():
                self.cut.discard((step.follower, step.leader))
                if not step.answers:
                    self.cut.add((step.follower, step.leader))
            case Withhold():
                self.withheld.add((step.broker, step.talk))
            case Release():
                self.withheld.discard((step.broker, step.talk))
            case Reassign():
                self.replicas = step.replicas
                self.decide(self.leader, self.isr)
            case Elect():
                self.decide(self.replicas[0], self.isr)
        return ("it came about" if isinstance(step, Wait) else "done"), None

    def write(self, step: Write) -> tuple[str, Any]:
        if self.follows[step.broker] != step.broker:
            return "refused", Produced(Error.NOT_LEADER_OR_FOLLOWER)
        if step.acks == -1 and len(self.isr) < self.min_isr:
            return "refused", Produced(Error.NOT_ENOUGH_REPLICAS)
        offset = len(self.logs[step.broker])
        self.logs[step.broker] += ((self.known[step.broker], self.written),)
        self.written += 1
        self.happen()
        committed = self.high_watermarks[step.broker] > offset
        return (NOT_YET, None) if step.acks == -1 and not committed else ("written", Produced(Error.NONE, offset))

    def read(self, step: Read) -> FetchResponse:
        hw = self.high_watermarks[step.broker]
        told = FetchResponse(Error.NONE, self.logs[step.broker], hw, hw, 0)
        request = Named.of(Fetch(step.offset, Isolation.LOG_END))
        self.events.append(Exchanged(broker=step.broker - 1, request=request, reply=Named.of(told)))
        return told

    def epoch_error(self, broker: int, epoch: int) -> Error:
        if epoch != self.known[broker]:
            older = epoch < self.known[broker]
            return Error.FENCED_LEADER_EPOCH if older else Error.UNKNOWN_LEADER_EPOCH
        return Error.NONE if self.follows[broker] == broker else Error.NOT_LEADER_OR_FOLLOWER

    # What happens by itself

    def happen(self) -> None:
        """Until nothing happens any more: who may hear, fetch, fail or join does."""
        for _ in range(4):
            for id_ in self.ids:
                self.hear(id_)
                self.lose(id_)
                self.fetch(id_, self.follows[id_])
                self.commit(id_)
                self.join(id_)

    def hear(self, id_: int) -> None:
        if id_ in self.running and (id_, Talk.METADATA) not in self.withheld:
            self.known[id_], self.follows[id_] = self.leader_epoch, self.leader
            if self.leader != id_:
                self.fetched = {pair: end for pair, end in self.fetched.items() if pair[0] != id_}

    def lose(self, id_: int) -> None:
        gone = id_ not in self.running or (id_, Talk.HEARTBEATS) in self.withheld
        others = [other for other in self.replicas if other in self.isr - {id_}]
        if gone and id_ in self.isr and others:
            self.decide(others[0] if self.leader == id_ else self.leader, self.isr - {id_})

    def fetch(self, follower: int, leader: int) -> None:
        reaches = follower != leader and (follower, leader) not in self.cut and {follower, leader} <= self.running
        if not reaches or self.epoch_error(leader, self.known[follower]) is not Error.NONE:
            return
        mine, others = self.logs[follower], self.logs[leader]
        if mine != others[: len(mine)] and not self.truncates:
            self.high_watermarks[follower] = min(len(mine), self.high_watermarks[leader])
            return
        self.logs[follower] = others
        self.fetched[leader, follower] = len(others)
        self.high_watermarks[follower] = self.high_watermarks[leader]

    def commit(self, leader: int) -> None:
        if self.follows[leader] != leader or self.known[leader] != self.leader_epoch:
            return
        have = [len(self.logs[member]) for member in self.isr if self.known[member] == self.leader_epoch]
        if self.remembers:
            others = self.isr - {leader}
            have = [len(self.logs[leader]), *(self.fetched.get((leader, member), 0) for member in others)]
        if len(have) == len(self.isr) >= self.min_isr:
            self.high_watermarks[leader] = max(self.high_watermarks[leader], min(have))

    def join(self, follower: int) -> None:
        asks = (self.leader, Talk.ISR_REQUESTS) not in self.withheld and (follower, self.leader) not in self.cut
        heard = (follower, Talk.HEARTBEATS) not in self.withheld and follower in self.running
        if follower not in self.isr and asks and heard and self.logs[follower] == self.logs[self.leader]:
            self.decide(self.leader, self.isr | {follower})

    def decide(self, leader: int, isr: frozenset[int]) -> None:
        self.leader_epoch += leader != self.leader
        self.partition_epoch += 1
        self.leader, self.isr = leader, isr
        self.events.append(Decided(controller=self.controller(), occasions=Occasions()))

    def controller(self) -> Controller:
        partition = Registration(
            replicas=tuple(id_ - 1 for id_ in self.replicas),
            isr=frozenset(id_ - 1 for id_ in self.isr),
            leader=self.leader - 1,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
        )
        return Controller(partition, tuple((id_ - 1, BrokerRegistration(epoch=id_)) for id_ in self.ids))

    def situation(self) -> Situation:
        return Situation(
            brokers=self.ids,
            running=frozenset(self.running),
            paused=frozenset(),
            ended=frozenset(self.ids) - self.running,
            replicas=self.replicas,
            leader=self.leader,
            leader_epoch=self.leader_epoch,
            isr=self.isr,
            elr=frozenset(),
            cut=frozenset(self.cut),
            written=self.written,
            open_writes=0,
            may_leave_open=True,
            belief=1,
        )
