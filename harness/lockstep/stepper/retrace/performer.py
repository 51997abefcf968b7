"""A counterexample as a script: each of its moves is brought about on a live cluster, as far as Kafka lets it.

By default nothing happens that the trace does not say: Fetch between replicas, metadata for brokers and AlterPartition
are all blocked. Each move unblocks the requests or responses that it needs, probes whether the effect came about, and
blocks them again.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from lockstep.stepper.conformance.script import (
    PATIENT_MS,
    NotReached,
    Setting,
    Steps,
    log_end,
    read,
    reply,
    wait,
    write,
)
from lockstep.stepper.driver.actions import (
    Crash,
    Cut,
    Elect,
    Idle,
    Kill,
    Mend,
    Reach,
    Reassign,
    Release,
    Start,
    Talk,
    Until,
    Withhold,
    Write,
)
from lockstep.stepper.driver.situation import Situation
from lockstep.stepper.retrace import moves
from lockstep.stepper.retrace.moves import Move
from lockstep.stepper.retrace.probes import (
    LONG_LOOKS,
    LOOK_MS,
    LOOKS,
    comes_to,
    hears,
    known_epoch,
    partition_in_words,
    refusal,
    until,
)
from lockstep.stepper.retrace.schedule import Placed, ordered
from lockstep.stepper.retrace.stage import HEARD_MS, RECORDS_BEFORE, go_on, look, out_of_isr, prepare
from lockstep.stepper.retrace.traces import Trace
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode
from lockstep_model.partition.produce import Produced


class MoveOutcome(StrEnum):
    """Result of one action of a trace on the live cluster."""

    DONE = "done"
    SO_ALREADY = "so already"
    NOT_DONE = "not done by Kafka"


class Performed(msgspec.Struct, frozen=True, kw_only=True):
    """An action of a trace with its result on the live cluster."""

    position: int
    """Position in the trace, counted from 1. The schedule may take actions in another order."""
    action: str
    outcome: MoveOutcome
    seen: str
    """What was observed: the effect, or why Kafka did not take the action."""


class Performance:
    """One trace on one topic: its script, and the result of each action."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.moves = ordered([_placed(trace, at) for at in range(len(trace.actions))])
        self.performed: list[Performed] = []
        self._ids: tuple[int, ...] = ()
        self._epochs: dict[int, int] = {}
        """Leader epochs of the cluster, by those of the trace."""
        self._untold: set[int] = set()
        """Brokers with an expired session in ZooKeeper mode: the controller sends them no LeaderAndIsr."""
        self._position = 0

    def script(self, setting: Setting, now: Situation) -> Steps[None]:
        """Prepare the initial state, make all moves, read every replica, then unblock everything and recover."""
        self._ids = now.replicas
        now = yield from prepare(self.trace, setting, now)
        for placed in self.moves:
            self._position = placed.position
            outcome, seen = yield from self._perform(setting, now, placed.move)
            self.performed.append(_performed(self.trace, placed, outcome, seen))
            now, _ = yield Idle(ms=LOOK_MS)
        yield from look(self._ids, now)
        yield from go_on(self._ids, now)

    def _perform(self, setting: Setting, now: Situation, move: Move) -> Steps[tuple[MoveOutcome, str]]:
        id_ = self._ids.__getitem__
        match move:
            case moves.Elects():
                return (yield from self._elects(now, id_(move.leader), move.epoch))
            case moves.Fails():
                return (yield from self._fails(now, id_(move.broker), move.epoch))
            case moves.Learns():
                return (yield from self._learns(now, id_(move.broker), move.epoch))
            case moves.Follows():
                return (yield from self._follows(now, move))
            case moves.Writes():
                return (yield from self._writes(id_(move.leader)))
            case moves.Fetches():
                return (yield from self._fetches(now, move))
            case moves.Commits():
                return (yield from self._commits(move.leader))
            case moves.LeavesIsr():
                now = yield from out_of_isr(id_(move.follower))
                yield from self._learns(now, id_(move.leader), None)
                return MoveOutcome.DONE, f"its session ended, which {id_(move.leader)} knows, and it is heard again"
            case moves.JoinsIsr():
                return (yield from self._joins(id_(move.leader), id_(move.follower)))
            case _:
                return (yield from self._minor(setting, now, move))

    def _minor(self, setting: Setting, now: Situation, move: Move) -> Steps[tuple[MoveOutcome, str]]:
        """Moves of our model that the published specification does not have."""
        broker = self._ids[move[0]]
        match move:
            case moves.SessionEnds():
                if broker in now.running:
                    yield Withhold(broker=broker, talk=Talk.HEARTBEATS)
                now = yield from wait(Until.FENCED)
                self._untold |= {broker} if setting.parameters.mode is Mode.ZK else set()
                return MoveOutcome.DONE, partition_in_words(now)
            case moves.HeardAgain():
                now = yield from self._heard_again(broker)
                return MoveOutcome.DONE, partition_in_words(now)
            case moves.LagPasses():
                yield Idle(ms=2 * setting.lag_ms)
                return MoveOutcome.DONE, f"{2 * setting.lag_ms} ms passed"
            case moves.IsrRequestArrives():
                return (yield from self._asked_for(now, broker))
            case moves.IsrResponseArrives() | moves.IsrResponseLost():
                if isinstance(move, moves.IsrResponseArrives):
                    yield Release(broker=broker, talk=Talk.ISR_ANSWERS)
                yield Idle(ms=PATIENT_MS)
                yield Withhold(broker=broker, talk=Talk.ISR_ANSWERS)
                return MoveOutcome.DONE, "as many answers as came"
            case moves.Killed():
                yield Kill(broker=broker)
                return MoveOutcome.DONE, "killed"
            case moves.LosesPower():
                end = RECORDS_BEFORE + len(self.trace.log(move.broker, self._position + 1))
                _, done = yield Crash(broker=broker, end=end)
                return MoveOutcome.DONE, done.seen
            case moves.Starts():
                yield Release(broker=broker, talk=Talk.METADATA)
                if broker in self._untold:  # a broker cannot start without ZooKeeper
                    self._untold.discard(broker)
                    yield Release(broker=broker, talk=Talk.HEARTBEATS)
                yield Start(broker=broker)
                yield from until(lambda now: broker in now.running, LONG_LOOKS)  # its last session may still be there
                now = yield from wait(Until.REGISTERED)
                yield from self._learns(now, broker, None)
                return MoveOutcome.DONE, partition_in_words(now)
            case _:
                raise TypeError(f"nothing brings about {move}")

    def _elects(self, now: Situation, leader: int, epoch: int) -> Steps[tuple[MoveOutcome, str]]:
        if now.leader == leader and now.leader_epoch not in self._epochs.values():
            self._epochs[epoch] = now.leader_epoch
            return MoveOutcome.SO_ALREADY, f"it leads in epoch {now.leader_epoch}"
        now = yield from self._elected(now, leader)
        self._epochs[epoch] = now.leader_epoch
        return MoveOutcome.DONE, f"it leads in epoch {now.leader_epoch}"

    def _elected(self, now: Situation, leader: int) -> Steps[Situation]:
        """Have a broker elected: put it first in the assignment, then request a preferred election."""
        order = (leader, *(id_ for id_ in now.replicas if id_ != leader))
        if now.replicas != order:
            yield Reassign(replicas=order)
        now, done = yield Elect()
        for _ in range(LOOKS):
            if now.leader == leader:
                return now
            now, _ = yield Idle(ms=LOOK_MS)
        raise NotReached(f"{leader} should lead: {done.seen}")

    def _fails(self, now: Situation, broker: int, epoch: int) -> Steps[tuple[MoveOutcome, str]]:
        """Have a broker removed from the ISR, and the leader epoch raised.

        KRaft does not raise the leader epoch when only the ISR shrinks (metadata version 3.6 and later). Then another
        ISR member is made leader for a moment, and the old leader is elected again.
        """
        before = now
        now = yield from out_of_isr(broker)
        others = [id_ for id_ in now.replicas if id_ in now.isr - {now.leader}]
        how = "its session ended"
        if now.leader_epoch == before.leader_epoch and others:
            now = yield from self._elected(now, others[0])
            now = yield from self._elected(now, before.leader)
            how += f", and {others[0]} led for a moment"
        self._epochs[epoch] = now.leader_epoch
        return MoveOutcome.DONE, f"{how}: {partition_in_words(now)}"

    def _heard_again(self, broker: int) -> Steps[Situation]:
        self._untold.discard(broker)
        yield Release(broker=broker, talk=Talk.HEARTBEATS)
        return (yield from wait(Until.REGISTERED))

    def _learns(self, now: Situation, broker: int, epoch: int | None) -> Steps[tuple[MoveOutcome, str]]:
        """Let a broker apply the latest decisions, then block its metadata again.

        In ZooKeeper mode its session must be restored first, whatever the trace says. A live broker always applies the
        newest decision; where the trace has it learn an older leader epoch only, the move is not done.
        """
        if broker in self._untold:
            now = yield from self._heard_again(broker)
        yield from hears(now, broker)
        yield Idle(ms=HEARD_MS)
        known = yield from known_epoch(now, broker)
        yield Withhold(broker=broker, talk=Talk.METADATA)
        yield from read(broker, 0, Reach.LOG_END)
        if epoch is not None and known > self._epochs[epoch]:
            return MoveOutcome.NOT_DONE, f"a broker hears of the newest decision: it is in epoch {known}"
        return MoveOutcome.DONE, f"it is in epoch {known}"

    def _follows(self, now: Situation, move: moves.Follows) -> Steps[tuple[MoveOutcome, str]]:
        """Let a broker become follower. Where the trace truncates its log, its Fetch to the leader is unblocked."""
        broker, leader = self._ids[move.broker], self._ids[move.leader]
        outcome, seen = yield from self._learns(now, broker, move.epoch)
        before, after = (self.trace.log(move.broker, at) for at in (self._position, self._position + 1))
        if len(after) == len(before):
            return outcome, seen
        _, was = yield from read(broker, 0, Reach.LOG_END)
        yield Mend(follower=broker, leader=leader)
        yield Idle(ms=LOOKS * LOOK_MS)
        _, told = yield from read(broker, 0, Reach.LOG_END)
        why = yield from refusal(now, broker, leader)
        yield Cut(follower=broker, leader=leader)
        if len(told.records) < len(was.records):
            return MoveOutcome.DONE, f"{seen}, and its log ends at {len(told.records)}"
        return MoveOutcome.NOT_DONE, f"{seen}; nothing is truncated, its log ends at {len(told.records)}{why}"

    def _writes(self, leader: int) -> Steps[tuple[MoveOutcome, str]]:
        if self.trace.is_published:
            produced = yield from write(leader, acks=1)
        else:
            _, done = yield Write(broker=leader, acks=-1)
            if done.reply is None:
                yield from read(leader, 0, Reach.LOG_END)  # the record is then observed in the leader's log
                return MoveOutcome.DONE, done.seen
            produced = reply(done, Produced)
            if produced.error is Error.NOT_ENOUGH_REPLICAS:
                yield from read(leader, 0, Reach.LOG_END)
                produced = yield from write(leader, acks=1)
        written = produced.error is Error.NONE
        return (MoveOutcome.DONE, f"at {produced.offset}") if written else (MoveOutcome.NOT_DONE, produced.error.name)

    def _fetches(self, now: Situation, move: moves.Fetches) -> Steps[tuple[MoveOutcome, str]]:
        """Let a follower fetch. A live follower fetches everything up to the leader's LEO at once.

        Where the trace gives it only a part of that, and has an AlterPartition as well, only its Fetch requests pass
        and no response does: the leader learns the follower's LEO, and the follower gets no records.
        """
        follower, leader = self._ids[move.follower], self._ids[move.leader]
        at = self._position + 1
        behind = len(self.trace.log(move.follower, at)) < len(self.trace.log(move.leader, at))
        whole = not behind or not any(isinstance(placed.move, moves.IsrRequestArrives) for placed in self.moves)
        yield Mend(follower=follower, leader=leader, answers=whole)
        if whole:
            came = yield from comes_to(follower, leader)
        else:
            yield Idle(ms=LOOKS * LOOK_MS // 2)
            came = True
        why = yield from refusal(now, follower, leader)
        end = yield from log_end(follower)
        yield Cut(follower=follower, leader=leader)
        seen = f"{'' if whole else 'only its requests pass; '}its log ends at {end}{why}"
        return MoveOutcome.DONE if came and not why else MoveOutcome.NOT_DONE, seen

    def _commits(self, leader: int) -> Steps[tuple[MoveOutcome, str]]:
        """Wait for the leader's high watermark to reach that of the trace."""
        expected = RECORDS_BEFORE + self.trace.high_watermark(leader, self._position + 1)
        for _ in range(LOOKS // 2):
            _, told = yield from read(self._ids[leader], 0)
            if told.high_watermark >= expected:
                return MoveOutcome.DONE, f"it is at {told.high_watermark}"
            yield Idle(ms=LOOK_MS)
        return MoveOutcome.NOT_DONE, f"it stays at {told.high_watermark}"

    def _joins(self, leader: int, follower: int) -> Steps[tuple[MoveOutcome, str]]:
        """Let the leader add a follower to the ISR: its Fetch requests pass, no Fetch response does."""
        yield Mend(follower=follower, leader=leader, answers=False)
        yield Release(broker=leader, talk=Talk.ISR_REQUESTS)
        now = yield from until(lambda now: follower in now.isr)
        yield Withhold(broker=leader, talk=Talk.ISR_REQUESTS)
        yield Cut(follower=follower, leader=leader)
        return MoveOutcome.DONE if follower in now.isr else MoveOutcome.NOT_DONE, partition_in_words(now)

    def _asked_for(self, now: Situation, leader: int) -> Steps[tuple[MoveOutcome, str]]:
        """Let the leader's AlterPartition reach the controller, until the ISR changes."""
        before = now.isr
        yield Release(broker=leader, talk=Talk.ISR_REQUESTS)
        now = yield from until(lambda now: now.isr != before)
        yield Withhold(broker=leader, talk=Talk.ISR_REQUESTS)
        return MoveOutcome.DONE if now.isr != before else MoveOutcome.NOT_DONE, partition_in_words(now)


def _placed(trace: Trace, position: int) -> Placed:
    move = moves.read(trace.actions[position])
    learns = isinstance(move, moves.Learns | moves.Follows)
    return Placed(move, position, trace.learned(move[0], position) if learns else trace.decided(position))


def _performed(trace: Trace, placed: Placed, outcome: MoveOutcome, seen: str) -> Performed:
    return Performed(position=placed.position + 1, action=trace.actions[placed.position], outcome=outcome, seen=seen)
