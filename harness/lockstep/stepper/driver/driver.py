"""Driver: takes each step on a live cluster, observes responses and controller decisions, and tells the tracker.

It stops when the cluster does what the reference model does not permit (`Divergence`).
"""

from __future__ import annotations

import select
import time
from dataclasses import dataclass
from typing import Any

from lockstep.clients.wire.connection import Connection, Pending
from lockstep.clients.wire.elections import Election as WireElection
from lockstep.clients.wire.elections import elect_leader
from lockstep.clients.wire.metadata import metadata
from lockstep.clients.wire.reassignments import reassign
from lockstep.clients.wire.refusals import Refused
from lockstep.closeable import Closeable
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import NodeState
from lockstep.faults.support.log_directories import log_of
from lockstep.network.conditions import Open
from lockstep.network.topology import Link
from lockstep.spec.cluster import Listener
from lockstep.stepper.driver import codec
from lockstep.stepper.driver.actions import (
    AddPartition,
    Ask,
    AskEpochEnd,
    AskMetadata,
    Crash,
    Cut,
    Elect,
    EndTransaction,
    Fault,
    GroupStep,
    Idle,
    InitProducer,
    Kill,
    Mend,
    Pause,
    Read,
    Reassign,
    Release,
    Resume,
    SetMinIsr,
    Start,
    Step,
    Stop,
    Talk,
    Transact,
    Until,
    Wait,
    Withhold,
    Write,
)
from lockstep.stepper.driver.broker_index import Numbering
from lockstep.stepper.driver.codec import Exchange
from lockstep.stepper.driver.control_plane_faults import REQUESTS_ONLY, Withholding
from lockstep.stepper.driver.coordinator import Coordinators
from lockstep.stepper.driver.coordinator_reloads import Reloads
from lockstep.stepper.driver.timeouts import ANSWER_S, NOT_YET, PATIENCE_S
from lockstep.stepper.driver.timers import MS, Timing
from lockstep.stepper.driver.topic_configs import set_min_isr, wait_for_settings
from lockstep.stepper.driver.transaction_codec import transact
from lockstep.stepper.driver.transactional_client import TransactionalClient
from lockstep.stepper.groups.driver import GroupStepper
from lockstep.stepper.model.client_requests import Reading, as_asked, in_words
from lockstep.stepper.model.controller_inference import Explained, Occasions
from lockstep.stepper.model.events import (
    Answered,
    Began,
    Configured,
    Decided,
    Ended,
    Events,
    Exchanged,
    Found,
    GaveUp,
    Identified,
    Leaves,
    MetadataTold,
    Named,
    Sent,
    Started,
    Surrounded,
)
from lockstep.stepper.model.state import OPERATIONS, Surroundings
from lockstep.stepper.model.tracker import Following
from lockstep.stepper.observers.decisions import ControllerObserver
from lockstep.stepper.observers.stopped_replicas import on_disk
from lockstep.stepper.walk.generator import Situation
from lockstep.wait import WaitTimeout, wait_until
from lockstep_model.controller import Controller
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.partition.produce import Acks, Unanswered
from lockstep_model.registration import NO_LEADER, BrokerId, Registration
from lockstep_model.transactions.coordinator import Answer

WAIT_S = 15.0
COORDINATOR_S = 5.0
"""How long to look for a transaction coordinator: the first time, __transaction_state has to be created."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A step that was taken."""

    step: Step
    seen: str
    """The cluster's response, or the outcome of the action, in words."""
    reply: Any = None
    """The last response that arrived during this step, as the model represents it."""
    decisions: tuple[str, ...]
    """The controller decisions observed during this step, in words."""
    explained: tuple[Explained, ...]
    """The causes of these decisions."""
    events: int
    """The number of events from the start of the run to the end of this step."""
    belief: int
    """The number of states in the belief after this step."""
    took_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    """A client request whose response has not arrived."""

    step: Write | Transact
    exchange: Exchange
    connection: Connection
    pending: Pending[Any]
    sent: int
    partition: Registration
    """The partition's registration when the request was sent."""
    alone: bool
    """Whether no other request was open when it was sent."""


class Stepper(Closeable):
    """Takes steps on one partition of a cluster, and keeps the tracker in lockstep with it."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        observer: ControllerObserver,
        parameters: Parameters,
        timing: Timing,
        reading: Reading = as_asked,
        groups: GroupStepper | None = None,
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._observer = observer
        self._timing = timing
        self._number = Numbering(cluster.broker_ids)
        self._connections: dict[int, Connection] = {}
        self._open: dict[int, _Open] = {}
        self._written = 0
        self._withholding = Withholding(cluster)
        self.decisions: list[str] = []
        """The controller decisions observed during the last step, in words."""
        self._reply: Any = None
        self._client = TransactionalClient(topic, parameters.transaction_version)
        self._coordinators = Coordinators(cluster)
        self._reloads: Reloads | None = None
        """Counts reloads of the transaction coordinator; only for versions in which they matter
        (`Parameters.coordinator_reloads`), and only after the first InitProducerId."""
        self.controller = self._number.controller(observer.current)
        """The controller's registrations at the last observation, with the model's broker numbers."""
        self._around = Surroundings()
        self._occasions = Occasions()
        self._unanswered_request = Occasions()
        """Administrative requests to which the controller did not respond: it may carry them out at any later time."""
        began = Began(controller=self.controller, ids=self._number.ids)
        self.events: list[Events] = [began]
        """All events so far, in the order in which the tracker got them."""
        self.following = Following(parameters, began, reading=reading)
        self._min_isr: tuple[int, ...] = (parameters.min_isr,)
        """min.insync.replicas values that a broker may still apply: any not confirmed superseded, then the latest."""
        self._groups = groups
        if groups is not None:
            groups.begin(self._tell)

    def close(self) -> None:
        for connection in [*self._connections.values(), *(request.connection for request in self._open.values())]:
            connection.close()
        if self._reloads is not None:
            self._reloads.close()

    def take(self, step: Step) -> Done:
        """Take a step; raises `Divergence` if the model does not permit an observation made during it."""
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
        if isinstance(step, GroupStep):
            return self._consume(step)
        match step:
            case Write() if step.acks == Acks.ALL or step.transaction is not None:
                return self._write(step)
            case Write() | Read() | Ask() | AskEpochEnd():
                return self._ask(step)
            case InitProducer() | AddPartition() | EndTransaction():
                return self._transact(step)
            case Kill() | Crash() | Stop() | Start() | Pause() | Resume() | Cut() | Mend() | Withhold() | Release():
                return self._disturb(step)
            case AskMetadata():
                return self._ask_metadata(step.broker)
            case Elect() | Reassign():
                return self._administer(step)
            case SetMinIsr():
                return self._set_min_isr(step.value)
            case Wait():
                return self._wait(step.until)
            case Idle():
                return self._idle(step.ms)

    # Requests

    def _ask(self, step: Write | Read | Ask | AskEpochEnd) -> str:
        """Send a request to which a broker responds at once, and wait for the response."""
        exchange = self._exchange(step)
        slot = self._free_slot()
        try:
            reply = exchange.read(exchange.send(self._connection(step.broker)).answer(ANSWER_S))
        except OSError as error:
            self._disconnect(step.broker)
            if not (isinstance(step, Write) and step.acks == 0 and self._reachable(step.broker)):
                return self._unanswered(slot, step, exchange, error)
            reply = Unanswered(closed=True)  # a broker rejects a produce with acks=0 by closing the connection
        self._observe(self._sent(slot, step.broker, exchange, reply))
        self._reply = reply  # the observation may have set that of an open write
        return in_words(reply)

    def _sent(self, slot: int, broker: int, exchange: Exchange, reply: Any = None) -> Sent:
        return Sent(
            slot=slot,
            broker=self._number(broker),
            request=Named.of(exchange.request),
            reply=None if reply is None else Named.of(reply),
        )

    def _unanswered(self, slot: int, step: Step, exchange: Exchange, error: OSError) -> str:
        """No response arrived. A write may have been appended or not; a read has changed nothing."""
        if isinstance(step, Write):
            self._observe(self._sent(slot, step.broker, exchange))
            self._tell(GaveUp(slot=slot))
        return f"no answer ({error})"

    def _ask_metadata(self, broker: int) -> str:
        """Send a Metadata request; decisions are observed first, for the response may already reflect them."""
        try:
            view = metadata(self._connection(broker), (self._topic,))
        except OSError as error:
            self._disconnect(broker)
            return f"no answer ({error})"
        self._observe()
        self._reply = told = codec.described(view, self._topic, self._number)
        self._tell(MetadataTold(broker=self._number(broker), told=told))
        return self.following.wording.described(told)

    def _write(self, step: Write) -> str:
        """Produce with acks=all or in a transaction: the response may wait for followers or for a coordinator."""
        return self._begin(step, step.broker, self._exchange(step))

    def _transact(self, step: Transact) -> str:
        """Send a request to the transaction coordinator; its response may wait for followers of __transaction_state."""
        if self._client.producer is None:
            return self._identify()
        coordinator = self._coordinator()
        if coordinator is None:
            return "there is no coordinator"
        try:
            return self._begin(step, coordinator, transact(step, self._topic, self._client))
        except OSError as error:  # no connection, so the request was never sent
            return f"no answer ({error})"

    def _identify(self) -> str:
        """Send the first InitProducerId of a new transactional id, under another id each time, until one succeeds."""

        def identified() -> bool:
            self._client.begin_anew()
            coordinator = self._coordinator()
            if coordinator is None:
                return False
            exchange = transact(InitProducer(), self._topic, self._client)
            answer: Answer = exchange.read(exchange.send(self._connection(coordinator)).answer(ANSWER_S))
            self._client.is_told(answer)
            return answer.error is Error.NONE

        try:
            wait_until(identified, timeout_s=WAIT_S, what="a producer id", interval_s=0.1, retry_on=(OSError,))
        except WaitTimeout:
            return "there is no coordinator"
        assert self._client.producer is not None
        if self.following.parameters.coordinator_reloads:
            self._reloads = Reloads(self._cluster, self._client.transactional_id)
        self._tell(Identified(producer=self._client.producer))
        self._observe()
        self._settle()
        return f"producer {self._client.producer.id} epoch {self._client.producer.epoch}"

    def _coordinator(self) -> int | None:
        """The broker that coordinates the transactional id, if it can be found and is running."""

        def find() -> int | None:
            self._observe()
            return self._look_for_coordinator()

        try:
            return wait_until(find, timeout_s=COORDINATOR_S, what="a coordinator", interval_s=0.1)
        except WaitTimeout:
            return None

    def _look_for_coordinator(self) -> int | None:
        paused = self._paused()
        return self._coordinators.look_for(self._client.transactional_id, self._running() - paused, paused)

    def _begin(self, step: Write | Transact, broker: int, exchange: Exchange) -> str:
        """Send a request whose response may take long, over a connection of its own."""
        slot = self._free_slot()
        connection = Connection(self._cluster.direct(broker), self._cluster.access(), ANSWER_S)
        sent = time.monotonic_ns()
        self._open[slot] = _Open(
            step=step,
            exchange=exchange,
            connection=connection,
            pending=exchange.send(connection),
            sent=sent,
            partition=self.controller.partition,
            alone=not self._open,
        )
        self._timing.opened[slot] = sent
        select.select([connection], [], [], PATIENCE_S)
        return self._observe(self._sent(slot, broker, exchange)) or NOT_YET

    def _exchange(self, step: Write | Read | Ask | AskEpochEnd) -> Exchange:
        match step:
            case Write():
                values = tuple(range(self._written, self._written + step.records))
                self._written += step.records
                return codec.write(step, self._topic, values, self._client)
            case Read():
                return codec.read(step, self._topic)
            case Ask():
                return codec.ask(step, self._topic)
            case AskEpochEnd():
                return codec.ask_epoch_end(step, self._topic)

    def _consume(self, step: GroupStep) -> str:
        """Let a consumer send a group request."""
        if self._groups is None:
            return "there are no consumers"
        seen, self._reply = self._groups.take(step)
        return seen

    def _connection(self, broker: int) -> Connection:
        """An open connection to a broker, as far as is known.

        Docker accepts connections to a published port even if the broker does not listen, and then closes them.
        """
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
        """The cluster's condition, by which a walk chooses its next step."""
        partition, id_ = self.controller.partition, self._number.ids.__getitem__
        paused = self._paused()
        running = self._running() - paused
        cut = frozenset((id_(follower), id_(leader)) for follower, leader in self._around.cut)
        return Situation(
            brokers=self._number.ids,
            running=running,
            paused=paused,
            ended=frozenset(b for b in self._number.ids if self._cluster.broker(b).state() is NodeState.STOPPED),
            replicas=tuple(map(id_, partition.replicas)),
            leader=id_(partition.leader) if partition.leader >= 0 else partition.leader,
            leader_epoch=partition.leader_epoch,
            isr=frozenset(map(id_, partition.isr)),
            elr=frozenset(map(id_, partition.elr)),
            cut=cut,
            written=self._written,
            open_writes=len(self._open),
            coordinating=any(not isinstance(request.step, Write) for request in self._open.values()),
            identified=self._client.producer is not None,
            adds_partitions=self._client.version < 2,
            may_leave_open=len(self._open) < OPERATIONS - 1,
            min_isr=self._min_isr[-1],
            belief=len(self.following.belief),
            groups=None
            if self._groups is None
            else self._groups.situation(running, cut, self.following.groups.beliefs()),
        )

    def _running(self) -> frozenset[int]:
        """The brokers whose process runs and that accept connections."""
        return frozenset(
            id_
            for id_ in self._cluster.broker_ids
            if self._cluster.broker(id_).state() is NodeState.RUNNING and self._reachable(id_)
        )

    def _paused(self) -> frozenset[int]:
        return frozenset(map(self._number.ids.__getitem__, self._around.paused))

    def _started(self) -> frozenset[BrokerId]:
        """The brokers whose process runs, by the model's numbers; a new process may not accept connections yet."""
        running = (id_ for id_ in self._number.ids if self._cluster.broker(id_).state() is NodeState.RUNNING)
        return frozenset(map(self._number, running))

    def _unheard(self) -> frozenset[BrokerId]:
        """Brokers whose heartbeats are held back."""
        return frozenset(map(self._number, self._withholding.brokers(Talk.HEARTBEATS)))

    def _deaf(self) -> frozenset[BrokerId]:
        """Brokers to which the controller's metadata is held back.

        In ZooKeeper mode the controller's own broker is left out, for no link carries its decisions to it.
        """
        return frozenset(map(self._number, self._withholding.brokers(Talk.METADATA) - {self._observer.broker}))

    def _reachable(self, broker: int) -> bool:
        try:
            self._connection(broker)
        except OSError:
            return False
        return True

    # Faults

    def _disturb(self, step: Fault) -> str:
        """Inject or heal a fault. The transaction coordinator is no longer steady after it."""
        if self._coordinators.unknown:
            self._look_for_coordinator()
        self._unsettle(step.follower if isinstance(step, Cut | Mend) else step.broker)
        match step:
            case Kill() | Crash() | Stop():
                return self._end(step)
            case Start():
                return self._start(step.broker)
            case Pause() | Resume():
                return self._hold(step)
            case Cut() | Mend():
                return self._link(step)
            case Withhold() | Release():
                return self._withhold(step)

    def _unsettle(self, *hit: int) -> None:
        """A fault hit these brokers, or their registrations changed.

        If one of them may be the transaction coordinator, its pending appends and markers may be lost.
        """
        lost = self._coordinators.among(hit)
        self._surround(self._around._replace(steady=False, disturbances=self._around.disturbances + lost))

    def _count_reloads(self) -> None:
        """Counts reloads of the coordinator's log: during one it returns COORDINATOR_LOAD_IN_PROGRESS, and after it
        only knows what the log holds."""
        if self._reloads is not None and (reloads := self._reloads.poll()):
            self._surround(self._around._replace(steady=False, reloads=self._around.reloads + reloads))

    def _settle(self) -> None:
        """The coordinator has just replicated an append: it is steady if no fault is left that could stop the next one.

        All brokers are live, none is paused or cut off, the partition's ISR is full, and no reload is pending.
        """
        partition = self.controller.partition
        calm = (
            not self._around.paused
            and not self._around.cut
            and self.controller.active_brokers() == frozenset(range(len(self._number.ids)))
            and partition.isr == frozenset(partition.replicas)
            and (self._reloads is None or self._reloads.heard())
        )
        if calm:
            self._surround(self._around._replace(steady=True))

    def _end(self, step: Kill | Crash | Stop) -> str:
        """End a broker's process. Responses and decisions from before are observed before the model's broker ends."""
        number = self._number(step.broker)
        clean = isinstance(step, Stop)
        node = self._cluster.broker(step.broker)
        if clean:
            self._occasions = self._occasions._replace(leaving=self._occasions.leaving | {number})
            self._tell(Leaves(broker=number))
            node.stop()
        else:
            node.kill()
        if isinstance(step, Crash):
            log_of(self._cluster, node, f"{self._topic}-0").cut(flushed=step.end, keep=0)
        self._observe()
        if self._groups is not None:
            self._groups.observe()
        self._tell(Ended(broker=number, clean=clean, cut=isinstance(step, Crash)))
        left = self._occasions.left | {number} if clean else self._occasions.left - {number}
        self._occasions = self._occasions._replace(left=left)
        self._disconnect(step.broker)
        return self._look_at_disk(step.broker)

    def _look_at_disk(self, broker: int) -> str:
        """Read a stopped broker's replica from its log directory: log start, records, checkpointed high watermark."""
        replica = on_disk(self._cluster, broker, self._topic, 0)
        if replica is None:
            return "ended"
        found = Found(
            broker=self._number(broker),
            start=replica.start,
            records=tuple(map(codec.logged, replica.records)),
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
        self._cluster.links.impose(link, Open() if step.answers else REQUESTS_ONLY)
        self._surround(self._around._replace(cut=self._around.cut - pair))
        self._observe()
        return "mended"

    def _withhold(self, step: Withhold | Release) -> str:
        """Hold back, or let pass, one kind of control-plane message between a broker and the controller.

        The model is told only about metadata and AlterPartition requests: for the others it already permits any delay.
        A broker may still apply metadata that it received just before, so a scenario should idle before it relies on
        the fault.
        """
        withholds = isinstance(step, Withhold)
        self._withholding.change(step.broker, step.talk, withheld=withholds)
        if withholds:
            self._observe()
        mute = frozenset(map(self._number, self._withholding.brokers(Talk.ISR_REQUESTS) - {self._observer.broker}))
        self._surround(self._around._replace(deaf=self._deaf(), mute=mute))
        if not withholds:
            self._observe()
        return "withheld" if withholds else "let pass"

    # Administration

    def _administer(self, step: Elect | Reassign) -> str:
        """Send an administrative request to the controller; its effect is observed in the controller's decisions.

        A controller that does not respond, because it is paused or cut off, may carry out the request later.
        """
        try:
            self._ask_controller(step)
        except OSError as error:
            self._observe()
            self._unanswered_request = self._occasions
            return str(error)
        except Refused as error:
            answer = str(error)
        else:
            answer = "done"
        self._observe()
        late = self._unanswered_request
        self._occasions = self._occasions._replace(
            preferred=late.preferred, unclean=late.unclean, assignment=late.assignment
        )
        return answer

    def _set_min_isr(self, value: int) -> str:
        """Set the topic's min.insync.replicas.

        Brokers may apply the old or the new value until every running broker is known to apply the new one.
        """
        self._go_by(*self._min_isr, value)
        self._occasions = self._occasions._replace(min_isr=True)
        try:
            set_min_isr(self._cluster, self._topic, value)
        except (WaitTimeout, Refused) as error:  # the change may still take effect
            self._observe()
            return str(error)
        known = wait_for_settings(self._cluster, self._topic, value)
        self._observe()
        self._occasions = self._occasions._replace(min_isr=False)
        if known:
            self._go_by(value)
        return "done" if known else "done, and not known to everyone"

    def _go_by(self, *min_isr: int) -> None:
        self._min_isr = tuple(dict.fromkeys(min_isr))
        self._tell(Configured(min_isr=self._min_isr))

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
        """Collect responses and controller decisions, and tell them; returns the responses to open requests, in words.

        Responses are collected before decisions and told after them: a broker may have responded on the basis of a
        decision that was made in the meantime.
        """
        answers = {slot: _answer(request) for slot, request in self._open.items() if request.pending.ready()}
        decisions = self._observer.poll()
        if not decisions:
            self._count_reloads()
        deaf = self._around.deaf & self._deaf()  # another broker may be the controller by now
        self._surround(self._around._replace(late=self._timing.late(), expired=self._timing.expired(), deaf=deaf))
        if sent is not None and sent.reply is not None and not decisions:
            self._tell(Exchanged(broker=sent.broker, request=sent.request, reply=sent.reply))
        elif sent is not None:
            self._tell(sent)
        for decision in decisions:
            self._decide(self._number.controller(decision.controller), decision.after_ns)
        if decisions:  # a coordinator that is told to reload has these decisions in its metadata, too
            self._count_reloads()
        if sent is not None and sent.reply is not None and decisions:
            self._tell(Answered(slot=sent.slot, reply=sent.reply))
        return "; ".join(self._answered(slot, answer) for slot, answer in answers.items())

    def _decide(self, seen: Controller, not_before: int) -> None:
        silent = self._timing.silent()
        if self.following.parameters.mode is Mode.ZK:  # the znodes show which sessions ended
            silent = frozenset(broker for broker, registration in seen.brokers if registration.fenced)
        came_or_gone = dict(seen.brokers).items() ^ dict(self.controller.brokers).items()
        hit = frozenset(self._number.ids[broker] for broker, _ in came_or_gone)
        self._unsettle(*hit)
        self._coordinators.come_or_gone(hit)
        self._tell(Decided(controller=seen, occasions=self._occasions._replace(silent=silent)))
        self._timing.decided(self.controller, seen, not_before)
        self.controller = seen
        self.decisions.append(self.following.wording.decision(seen, self.following.explained[-1]))

    def _answered(self, slot: int, reply: Any | None) -> str:
        """Tell the response to an open request, or that its connection broke."""
        request = self._open.pop(slot)
        request.connection.close()
        del self._timing.opened[slot]
        if reply is None:
            self._tell(GaveUp(slot=slot))
        else:
            self._reply = reply
            self._tell(Answered(slot=slot, reply=Named.of(reply)))
        if isinstance(request.step, Write):
            self._wrote(request.step, request, reply)
        else:
            self._transacted(request.step, reply)
        kind = "write" if isinstance(request.step, Write) else "request"
        return f"{kind} {slot} is never answered" if reply is None else f"{kind} {slot}: {in_words(reply)}"

    def _wrote(self, step: Write, request: _Open, reply: Any | None) -> None:
        if step.transaction is not None:
            self._client.has_written(step.transaction, step.records, reply)
            return
        done = reply is not None and reply.error is Error.NONE
        if done and request.alone and request.partition == self.controller.partition:
            self._timing.committed(request.partition.isr, request.partition.leader, request.sent)

    def _transacted(self, step: Transact, reply: Answer | None) -> None:
        """Apply a coordinator's response to the client, if there is one.

        InitProducerId and EndTxn that succeed prove that the coordinator can replicate its log. AddPartitionsToTxn may
        succeed without an append.
        """
        done = reply is not None and reply.error is Error.NONE
        if reply is not None:
            self._client.is_told(reply)
        if done and not isinstance(step, AddPartition):
            self._settle()

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
            case Until.GROUP_ANSWERS:
                return self._groups is None or self._groups.all_answered()
            case Until.IN_SYNC:
                return running & frozenset(partition.replicas) <= partition.isr
            case Until.SHRUNK:
                return partition.isr < frozenset(partition.replicas)
            case Until.LED:
                return partition.leader in running
            case Until.LEADERLESS:
                return partition.leader == NO_LEADER
            case Until.ALONE:
                return partition.isr == {partition.leader}
            case Until.REGISTERED:
                return self._started() - self._unheard() <= self.controller.active_brokers()
            case Until.FENCED:
                return self.controller.active_brokers() <= self._started() - self._unheard()


def _answer(request: _Open) -> Any | None:
    try:
        return request.exchange.read(request.pending.answer(0))
    except OSError:
        return None
