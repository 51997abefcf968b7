"""Steps on a live cluster and on the model at once, until the cluster does what the model does not permit."""

from __future__ import annotations

import select
import time
from dataclasses import dataclass
from typing import Any

from harness.clients.wire.connection import Connection, Pending
from harness.clients.wire.elections import Election as WireElection
from harness.clients.wire.elections import elect_leader
from harness.clients.wire.reassignments import reassign
from harness.clients.wire.refusals import Refused
from harness.closeable import Closeable
from harness.cluster.cluster import Cluster
from harness.cluster.node import NodeState
from harness.cluster.spec import Listener
from harness.lockstep import translating
from harness.lockstep.events import (
    Answered,
    Began,
    Decided,
    Ended,
    Events,
    Exchanged,
    Found,
    GaveUp,
    Named,
    Sent,
    Started,
    Surrounded,
)
from harness.lockstep.explaining import Explained, Occasions
from harness.lockstep.following import Following
from harness.lockstep.handling import Reading, as_asked, in_words
from harness.lockstep.numbering import Numbering
from harness.lockstep.observers.decisions import ControllerObserver
from harness.lockstep.observers.replicas import on_disk
from harness.lockstep.steps import (
    Ask,
    AskEpochEnd,
    Cut,
    Elect,
    Idle,
    Kill,
    Mend,
    Pause,
    Read,
    Reassign,
    Resume,
    Start,
    Step,
    Stop,
    Until,
    Wait,
    Write,
)
from harness.lockstep.timing import MS, Timing
from harness.lockstep.translating import Exchange
from harness.lockstep.walk import Situation
from harness.lockstep.world import OPERATIONS, Surroundings
from harness.network.topology import Link
from harness.wait import WaitTimeout, wait_until
from reference_model.controller import Controller
from reference_model.errors import Error
from reference_model.parameters import Mode, Parameters
from reference_model.produce import Unanswered
from reference_model.registration import NO_LEADER, BrokerId, Registration

PATIENCE_S = 0.15
"""For how long a step waits for an answer that may take longer."""
ANSWER_S = 10.0
"""For how long it waits for one that may not."""
WAIT_S = 15.0
NOT_YET = "not answered yet"
"""What is seen of a write that stays open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A step that was taken."""

    step: Step
    seen: str
    """What the cluster answered, in words."""
    reply: Any = None
    """The last answer to a request that came during this step, as the model gives it."""
    decisions: tuple[str, ...]
    explained: tuple[Explained, ...]
    """Why the controller decided what it did during this step."""
    events: int
    """How many things the model was told up to its end."""
    belief: int
    """How many states explain everything so far."""
    took_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    """A write that waits for its answer."""

    exchange: Exchange
    connection: Connection
    pending: Pending[Any]
    sent: int
    partition: Registration
    """As the controller had it when it was sent."""
    alone: bool
    """Whether no other write was open with it."""


class Stepper(Closeable):
    """Takes steps on one partition of a cluster."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        observer: ControllerObserver,
        parameters: Parameters,
        timing: Timing,
        reading: Reading = as_asked,
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._observer = observer
        self._timing = timing
        self._number = Numbering(cluster.broker_ids)
        self._connections: dict[int, Connection] = {}
        self._open: dict[int, _Open] = {}
        self._written = 0
        self.decisions: list[str] = []
        """What the controller decided during the last step, in words."""
        self._reply: Any = None
        self.controller = self._number.controller(observer.current)
        """What the controller knew when it was last looked at."""
        self._around = Surroundings()
        self._occasions = Occasions()
        began = Began(controller=self.controller, ids=self._number.ids)
        self.events: list[Events] = [began]
        """All that the model was told."""
        self.following = Following(parameters, began, reading=reading)

    def close(self) -> None:
        for connection in [*self._connections.values(), *(write.connection for write in self._open.values())]:
            connection.close()

    def take(self, step: Step) -> Done:
        """Take a step; raises `Divergence` if the model does not permit what is seen."""
        began = time.monotonic_ns()
        self.decisions = []
        self._reply = None
        explained = len(self.following.explained)
        seen = self._take(step)
        return Done(
            step=step,
            seen=seen,
            reply=self._reply,
            decisions=tuple(self.decisions),
            explained=tuple(self.following.explained[explained:]),
            events=len(self.events),
            belief=len(self.following.belief),
            took_ns=time.monotonic_ns() - began,
        )

    def _tell(self, event: Events) -> None:
        self.events.append(event)
        self.following.tell(event)

    def _surround(self, around: Surroundings) -> None:
        if around != self._around:
            self._around = around
            self._tell(Surrounded(surroundings=around))

    def _take(self, step: Step) -> str:
        match step:
            case Write(acks=-1):
                return self._write(step)
            case Write() | Read() | Ask() | AskEpochEnd():
                return self._ask(step)
            case Kill() | Stop():
                return self._end(step)
            case Start():
                return self._start(step.broker)
            case Pause() | Resume():
                return self._hold(step)
            case Cut() | Mend():
                return self._link(step)
            case Elect() | Reassign():
                return self._administer(step)
            case Wait():
                return self._wait(step.until)
            case Idle():
                return self._idle(step.ms)

    # Requests

    def _ask(self, step: Write | Read | Ask | AskEpochEnd) -> str:
        """Ask a broker and wait for its answer, which is given at once."""
        exchange = self._exchange(step)
        slot = self._free_slot()
        try:
            reply = exchange.read(exchange.send(self._connection(step.broker)).answer(ANSWER_S))
        except OSError as error:
            self._disconnect(step.broker)
            if not (isinstance(step, Write) and step.acks == 0 and self._reachable(step.broker)):
                return self._unanswered(slot, step, exchange, error)
            reply = Unanswered(closed=True)  # that is how a producer with acks=0 is refused
        self._reply = reply
        self._observe(self._sent(slot, step.broker, exchange, reply))
        return in_words(reply)

    def _sent(self, slot: int, broker: int, exchange: Exchange, reply: Any = None) -> Sent:
        return Sent(
            slot=slot,
            broker=self._number(broker),
            request=Named.of(exchange.request),
            reply=None if reply is None else Named.of(reply),
        )

    def _unanswered(self, slot: int, step: Step, exchange: Exchange, error: OSError) -> str:
        """Whether a write was appended nobody knows."""
        if isinstance(step, Write):
            self._observe(self._sent(slot, step.broker, exchange))
            self._tell(GaveUp(slot=slot))
        return f"no answer ({error})"

    def _write(self, step: Write) -> str:
        """Write with acks=all: it may wait for followers that cannot come."""
        exchange = self._exchange(step)
        slot = self._free_slot()
        connection = Connection(self._cluster.direct(step.broker), self._cluster.access(), ANSWER_S)
        sent = time.monotonic_ns()
        self._open[slot] = _Open(
            exchange=exchange,
            connection=connection,
            pending=exchange.send(connection),
            sent=sent,
            partition=self.controller.partition,
            alone=not self._open,
        )
        self._timing.opened[slot] = sent
        select.select([connection], [], [], PATIENCE_S)
        return self._observe(self._sent(slot, step.broker, exchange)) or NOT_YET

    def _exchange(self, step: Write | Read | Ask | AskEpochEnd) -> Exchange:
        match step:
            case Write():
                values = tuple(range(self._written, self._written + step.records))
                self._written += step.records
                return translating.write(step, self._topic, values)
            case Read():
                return translating.read(step, self._topic)
            case Ask():
                return translating.ask(step, self._topic)
            case AskEpochEnd():
                return translating.ask_epoch_end(step, self._topic)

    def _connection(self, broker: int) -> Connection:
        """One that is open, as far as is known: Docker takes connections to brokers that do not, and closes them."""
        known = self._connections.get(broker)
        if known is None or known.is_closed():
            self._disconnect(broker)
            self._connections[broker] = Connection(self._cluster.direct(broker), self._cluster.access(), ANSWER_S)
        return self._connections[broker]

    def _disconnect(self, broker: int) -> None:
        if (known := self._connections.pop(broker, None)) is not None:
            known.close()

    def _free_slot(self) -> int:
        return next(slot for slot in range(OPERATIONS) if slot not in self._open)

    def situation(self) -> Situation:
        """What a walk draws its next step by."""
        partition, id_ = self.controller.partition, self._number.ids.__getitem__
        paused = frozenset(map(id_, self._around.paused))
        return Situation(
            brokers=self._number.ids,
            running=self._running() - paused,
            paused=paused,
            ended=frozenset(b for b in self._number.ids if self._cluster.broker(b).state() is NodeState.STOPPED),
            replicas=tuple(map(id_, partition.replicas)),
            leader=id_(partition.leader) if partition.leader >= 0 else partition.leader,
            leader_epoch=partition.leader_epoch,
            isr=frozenset(map(id_, partition.isr)),
            elr=frozenset(map(id_, partition.elr)),
            cut=frozenset((id_(follower), id_(leader)) for follower, leader in self._around.cut),
            written=self._written,
            open_writes=len(self._open),
            may_leave_open=len(self._open) < OPERATIONS - 1,
            belief=len(self.following.belief),
            atomic=self.following.parameters.mode is Mode.KRAFT,
        )

    def _running(self) -> frozenset[int]:
        """The brokers that run and answer."""
        return frozenset(
            id_
            for id_ in self._cluster.broker_ids
            if self._cluster.broker(id_).state() is NodeState.RUNNING and self._reachable(id_)
        )

    def _started(self) -> frozenset[BrokerId]:
        """The brokers whose process runs, by their numbers; one that has just started may not answer yet."""
        running = (id_ for id_ in self._number.ids if self._cluster.broker(id_).state() is NodeState.RUNNING)
        return frozenset(map(self._number, running))

    def _reachable(self, broker: int) -> bool:
        try:
            self._connection(broker)
        except OSError:
            return False
        return True

    # Faults

    def _end(self, step: Kill | Stop) -> str:
        """End a broker's process. What it said before is taken in before it is gone from the model."""
        number = self._number(step.broker)
        clean = isinstance(step, Stop)
        node = self._cluster.broker(step.broker)
        if clean:
            self._occasions = self._occasions._replace(leaving=self._occasions.leaving | {number})
            node.stop()
        else:
            node.kill()
        self._observe()
        self._tell(Ended(broker=number, clean=clean))
        left = self._occasions.left | {number} if clean else self._occasions.left - {number}
        self._occasions = self._occasions._replace(left=left)
        self._disconnect(step.broker)
        return self._look_at_disk(step.broker)

    def _look_at_disk(self, broker: int) -> str:
        """What a broker that does not run has of the partition."""
        replica = on_disk(self._cluster, broker, self._topic, 0)
        if replica is None:
            return "ended"
        found = Found(
            broker=self._number(broker),
            start=replica.start,
            records=tuple((one.partition_leader_epoch, int(one.value or b"-1")) for one in replica.records),
            high_watermark=min(max(replica.high_watermark or 0, replica.start), replica.end),
        )
        self._tell(found)
        return f"ended with its log at {replica.end} and its high watermark at {found.high_watermark}"

    def _start(self, broker: int) -> str:
        self._cluster.broker(broker).start()
        number = self._number(broker)
        self._tell(Started(broker=number))
        self._occasions = self._occasions._replace(leaving=self._occasions.leaving - {number})
        self._observe()
        return "started"

    def _hold(self, step: Pause | Resume) -> str:
        number = frozenset({self._number(step.broker)})
        if isinstance(step, Pause):
            self._cluster.broker(step.broker).pause()
            self._observe()
            self._surround(self._around._replace(paused=self._around.paused | number))
            return "paused"
        self._cluster.broker(step.broker).resume()
        self._surround(self._around._replace(paused=self._around.paused - number))
        self._observe()
        return "resumed"

    def _link(self, step: Cut | Mend) -> str:
        link = Link(source=f"broker-{step.follower}", destination=f"broker-{step.leader}", listener=Listener.REPL)
        pair = frozenset({(self._number(step.follower), self._number(step.leader))})
        if isinstance(step, Cut):
            self._cluster.links.cut(link)
            self._observe()
            self._surround(self._around._replace(cut=self._around.cut | pair))
            return "cut"
        self._cluster.links.mend(link)
        self._surround(self._around._replace(cut=self._around.cut - pair))
        self._observe()
        return "mended"

    # Administration

    def _administer(self, step: Elect | Reassign) -> str:
        """Ask the controller for something; what it does is seen in its decisions."""
        try:
            self._ask_controller(step)
        except (Refused, OSError) as error:
            answer = str(error)
        else:
            answer = "done"
        self._observe()
        self._occasions = self._occasions._replace(preferred=False, unclean=False, assignment=None)
        return answer

    def _ask_controller(self, step: Elect | Reassign) -> None:
        told = {view.controller for view in self._cluster.ask_all().values()}
        address = self._cluster.direct(next(id_ for id_ in told if id_ in self._cluster.broker_ids))
        if isinstance(step, Elect):
            self._occasions = self._occasions._replace(preferred=not step.unclean, unclean=step.unclean)
            election = WireElection.UNCLEAN if step.unclean else WireElection.PREFERRED
            elect_leader(address, self._topic, 0, election, access=self._cluster.access())
        else:
            assignment = tuple(self._number(id_) for id_ in step.replicas)
            self._occasions = self._occasions._replace(assignment=assignment)
            reassign(address, self._topic, 0, step.replicas, access=self._cluster.access())

    # Observation

    def _observe(self, sent: Sent | None = None) -> str:
        """Take in all that was answered and decided until now; returns what open writes were answered.

        Answers are looked at before decisions, and taken in after them: a broker may have answered by what the
        controller had decided meanwhile.
        """
        answers = {slot: _answer(write) for slot, write in self._open.items() if write.pending.ready()}
        decisions = self._observer.poll()
        self._surround(self._around._replace(late=self._timing.late(), expired=self._timing.expired()))
        if sent is not None and sent.reply is not None and not decisions:
            self._tell(Exchanged(broker=sent.broker, request=sent.request, reply=sent.reply))
        elif sent is not None:
            self._tell(sent)
        for decision in decisions:
            self._decide(self._number.controller(decision.controller), decision.after_ns)
        if sent is not None and sent.reply is not None and decisions:
            self._tell(Answered(slot=sent.slot, reply=sent.reply))
        return "; ".join(self._answered(slot, answer) for slot, answer in answers.items())

    def _decide(self, seen: Controller, not_before: int) -> None:
        silent = self._timing.silent()
        if self.following.parameters.mode is Mode.ZK:  # there it is seen
            silent = frozenset(broker for broker, registration in seen.brokers if registration.fenced)
        self._tell(Decided(controller=seen, occasions=self._occasions._replace(silent=silent)))
        self._timing.decided(self.controller, seen, not_before)
        self.controller = seen
        self.decisions.append(self.following.wording.decision(seen, self.following.explained[-1]))

    def _answered(self, slot: int, reply: Any | None) -> str:
        """An open write is answered, or never will be."""
        write = self._open.pop(slot)
        write.connection.close()
        del self._timing.opened[slot]
        if reply is None:
            self._tell(GaveUp(slot=slot))
            return f"write {slot} is never answered"
        self._reply = reply
        self._tell(Answered(slot=slot, reply=Named.of(reply)))
        if write.alone and reply.error is Error.NONE and write.partition == self.controller.partition:
            self._timing.committed(write.partition.isr, write.partition.leader, write.sent)
        return f"write {slot}: {in_words(reply)}"

    def _wait(self, until: Until) -> str:
        try:
            wait_until(lambda: self._come_about(until), timeout_s=WAIT_S, what=str(until), interval_s=0.05)
        except WaitTimeout:
            return "it did not come about"
        return "it came about"

    def _idle(self, ms: int) -> str:
        over = time.monotonic_ns() + ms * MS
        while time.monotonic_ns() < over:
            time.sleep(0.05)
            self._observe()
        return "it passed"

    def _come_about(self, until: Until) -> bool:
        self._observe()
        partition = self.controller.partition
        running = {self._number(id_) for id_ in self._running()}
        match until:
            case Until.ANSWERS:
                return not self._open
            case Until.IN_SYNC:
                return running <= partition.isr
            case Until.SHRUNK:
                return partition.isr < frozenset(partition.replicas)
            case Until.LED:
                return partition.leader in running
            case Until.LEADERLESS:
                return partition.leader == NO_LEADER
            case Until.ALONE:
                return partition.isr == {partition.leader}
            case Until.REGISTERED:
                return self._started() <= self.controller.active_brokers()


def _answer(write: _Open) -> Any | None:
    try:
        return write.exchange.read(write.pending.answer(0))
    except OSError:
        return None
