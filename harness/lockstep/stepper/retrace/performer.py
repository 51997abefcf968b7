"""A counterexample as a script: each of its moves, made on a live cluster as far as that lets it be made.

Nothing happens on such a cluster that the trace does not say: followers are cut off from their leaders, brokers do not
hear of decisions, and what leaders ask for does not reach the controller. Each move lets pass what it is about, looks
whether that came about, and no more passes.
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
from lockstep.stepper.walk.generator import Situation
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode
from lockstep_model.partition.produce import Produced


class Outcome(StrEnum):
    """What became of an action of a trace."""

    DONE = "done"
    SO_ALREADY = "so already"
    NOT_DONE = "not done by Kafka"


class Performed(msgspec.Struct, frozen=True, kw_only=True):
    """An action of a trace, and what came of it."""

    position: int
    """Where it stands in the trace, from 1 on; they are taken in another order where none else can be."""
    action: str
    outcome: Outcome
    seen: str
    """What was done, or what stood in the way."""


class Performance:
    """One trace on one topic: a script, and what became of each action."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.moves = ordered([_placed(trace, at) for at in range(len(trace.actions))])
        self.performed: list[Performed] = []
        self._ids: tuple[int, ...] = ()
        self._epochs: dict[int, int] = {}
        """The leader epochs that decisions began on the cluster, by those of the trace."""
        self._untold: set[int] = set()
        """Whom ZooKeeper's controller tells nothing, because their sessions are over."""
        self._position = 0

    def script(self, setting: Setting, now: Situation) -> Steps[None]:
        """Bring the beginning about, make all moves, look, and let everything go on."""
        self._ids = now.replicas
        now = yield from prepare(self.trace, setting, now)
        for placed in self.moves:
            self._position = placed.position
            outcome, seen = yield from self._perform(setting, now, placed.move)
            self.performed.append(_performed(self.trace, placed, outcome, seen))
            now, _ = yield Idle(ms=LOOK_MS)
        yield from look(self._ids, now)
        yield from go_on(self._ids, now)

    def _perform(self, setting: Setting, now: Situation, move: Move) -> Steps[tuple[Outcome, str]]:
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
            case moves.Leaves():
                now = yield from out_of_isr(id_(move.follower))
                yield from self._learns(now, id_(move.leader), None)
                return Outcome.DONE, f"its session ended, which {id_(move.leader)} knows, and it is heard again"
            case moves.Joins():
                return (yield from self._joins(id_(move.leader), id_(move.follower)))
            case _:
                return (yield from self._minor(setting, now, move))

    def _minor(self, setting: Setting, now: Situation, move: Move) -> Steps[tuple[Outcome, str]]:
        """Moves that our machine has, and the published one has not."""
        broker = self._ids[move[0]]
        match move:
            case moves.SessionEnds():
                if broker in now.running:
                    yield Withhold(broker=broker, talk=Talk.HEARTBEATS)
                now = yield from wait(Until.FENCED)
                self._untold |= {broker} if setting.parameters.mode is Mode.ZK else set()
                return Outcome.DONE, partition_in_words(now)
            case moves.HeardAgain():
                now = yield from self._heard_again(broker)
                return Outcome.DONE, partition_in_words(now)
            case moves.LagPasses():
                yield Idle(ms=2 * setting.lag_ms)
                return Outcome.DONE, f"{2 * setting.lag_ms} ms passed"
            case moves.AskedFor():
                return (yield from self._asked_for(now, broker))
            case moves.Answered() | moves.AnswerLost():
                if isinstance(move, moves.Answered):
                    yield Release(broker=broker, talk=Talk.ISR_ANSWERS)
                yield Idle(ms=PATIENT_MS)
                yield Withhold(broker=broker, talk=Talk.ISR_ANSWERS)
                return Outcome.DONE, "as many answers as came"
            case moves.Killed():
                yield Kill(broker=broker)
                return Outcome.DONE, "killed"
            case moves.LosesPower():
                end = RECORDS_BEFORE + len(self.trace.log(move.broker, self._position + 1))
                _, done = yield Crash(broker=broker, end=end)
                return Outcome.DONE, done.seen
            case moves.Starts():
                yield Release(broker=broker, talk=Talk.METADATA)
                if broker in self._untold:  # it needs ZooKeeper to start at all
                    self._untold.discard(broker)
                    yield Release(broker=broker, talk=Talk.HEARTBEATS)
                yield Start(broker=broker)
                yield from until(lambda now: broker in now.running, LONG_LOOKS)  # its last session may still be there
                now = yield from wait(Until.REGISTERED)
                yield from self._learns(now, broker, None)
                return Outcome.DONE, partition_in_words(now)
            case _:
                raise TypeError(f"nothing brings about {move}")

    def _elects(self, now: Situation, leader: int, epoch: int) -> Steps[tuple[Outcome, str]]:
        if now.leader == leader and now.leader_epoch not in self._epochs.values():
            self._epochs[epoch] = now.leader_epoch
            return Outcome.SO_ALREADY, f"it leads in epoch {now.leader_epoch}"
        now = yield from self._elected(now, leader)
        self._epochs[epoch] = now.leader_epoch
        return Outcome.DONE, f"it leads in epoch {now.leader_epoch}"

    def _elected(self, now: Situation, leader: int) -> Steps[Situation]:
        """Whom the controller elects is the first of the assignment, if that is in sync."""
        order = (leader, *(id_ for id_ in now.replicas if id_ != leader))
        if now.replicas != order:
            yield Reassign(replicas=order)
        now, done = yield Elect()
        for _ in range(LOOKS):
            if now.leader == leader:
                return now
            now, _ = yield Idle(ms=LOOK_MS)
        raise NotReached(f"{leader} should lead: {done.seen}")

    def _fails(self, now: Situation, broker: int, epoch: int) -> Steps[tuple[Outcome, str]]:
        """Where only the ISR shrinks the epoch does not rise with it: somebody else leads for a moment."""
        before = now
        now = yield from out_of_isr(broker)
        others = [id_ for id_ in now.replicas if id_ in now.isr - {now.leader}]
        how = "its session ended"
        if now.leader_epoch == before.leader_epoch and others:
            now = yield from self._elected(now, others[0])
            now = yield from self._elected(now, before.leader)
            how += f", and {others[0]} led for a moment"
        self._epochs[epoch] = now.leader_epoch
        return Outcome.DONE, f"{how}: {partition_in_words(now)}"

    def _heard_again(self, broker: int) -> Steps[Situation]:
        self._untold.discard(broker)
        yield Release(broker=broker, talk=Talk.HEARTBEATS)
        return (yield from wait(Until.REGISTERED))

    def _learns(self, now: Situation, broker: int, epoch: int | None) -> Steps[tuple[Outcome, str]]:
        """In ZooKeeper mode it must be heard again first, whatever the trace says."""
        if broker in self._untold:
            now = yield from self._heard_again(broker)
        yield from hears(now, broker)
        yield Idle(ms=HEARD_MS)
        known = yield from known_epoch(now, broker)
        yield Withhold(broker=broker, talk=Talk.METADATA)
        yield from read(broker, 0, Reach.LOG_END)
        if epoch is not None and known > self._epochs[epoch]:
            return Outcome.NOT_DONE, f"a broker hears of the newest decision: it is in epoch {known}"
        return Outcome.DONE, f"it is in epoch {known}"

    def _follows(self, now: Situation, move: moves.Follows) -> Steps[tuple[Outcome, str]]:
        """Where a follower truncates by whom it follows it must be able to ask that one."""
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
            return Outcome.DONE, f"{seen}, and its log ends at {len(told.records)}"
        return Outcome.NOT_DONE, f"{seen}; nothing is truncated, its log ends at {len(told.records)}{why}"

    def _writes(self, leader: int) -> Steps[tuple[Outcome, str]]:
        if self.trace.is_published:
            produced = yield from write(leader, acks=1)
        else:
            _, done = yield Write(broker=leader, acks=-1)
            if done.reply is None:
                yield from read(leader, 0, Reach.LOG_END)  # so that it is known to be there
                return Outcome.DONE, done.seen
            produced = reply(done, Produced)
            if produced.error is Error.NOT_ENOUGH_REPLICAS:
                yield from read(leader, 0, Reach.LOG_END)
                produced = yield from write(leader, acks=1)
        written = produced.error is Error.NONE
        return (Outcome.DONE, f"at {produced.offset}") if written else (Outcome.NOT_DONE, produced.error.name)

    def _fetches(self, now: Situation, move: moves.Fetches) -> Steps[tuple[Outcome, str]]:
        """A live follower fetches all at once.

        Where the trace lets it have a part, and its leader asks for it then, only its requests pass.
        """
        follower, leader = self._ids[move.follower], self._ids[move.leader]
        at = self._position + 1
        behind = len(self.trace.log(move.follower, at)) < len(self.trace.log(move.leader, at))
        whole = not behind or not any(isinstance(placed.move, moves.AskedFor) for placed in self.moves)
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
        return Outcome.DONE if came and not why else Outcome.NOT_DONE, seen

    def _commits(self, leader: int) -> Steps[tuple[Outcome, str]]:
        expected = RECORDS_BEFORE + self.trace.high_watermark(leader, self._position + 1)
        for _ in range(LOOKS // 2):
            _, told = yield from read(self._ids[leader], 0)
            if told.high_watermark >= expected:
                return Outcome.DONE, f"it is at {told.high_watermark}"
            yield Idle(ms=LOOK_MS)
        return Outcome.NOT_DONE, f"it stays at {told.high_watermark}"

    def _joins(self, leader: int, follower: int) -> Steps[tuple[Outcome, str]]:
        """The leader hears how far the follower is, which gets no more."""
        yield Mend(follower=follower, leader=leader, answers=False)
        yield Release(broker=leader, talk=Talk.ISR_REQUESTS)
        now = yield from until(lambda now: follower in now.isr)
        yield Withhold(broker=leader, talk=Talk.ISR_REQUESTS)
        yield Cut(follower=follower, leader=leader)
        return Outcome.DONE if follower in now.isr else Outcome.NOT_DONE, partition_in_words(now)

    def _asked_for(self, now: Situation, leader: int) -> Steps[tuple[Outcome, str]]:
        before = now.isr
        yield Release(broker=leader, talk=Talk.ISR_REQUESTS)
        now = yield from until(lambda now: now.isr != before)
        yield Withhold(broker=leader, talk=Talk.ISR_REQUESTS)
        return Outcome.DONE if now.isr != before else Outcome.NOT_DONE, partition_in_words(now)


def _placed(trace: Trace, position: int) -> Placed:
    move = moves.read(trace.actions[position])
    learns = isinstance(move, moves.Learns | moves.Follows)
    return Placed(move, position, trace.learned(move[0], position) if learns else trace.decided(position))


def _performed(trace: Trace, placed: Placed, outcome: Outcome, seen: str) -> Performed:
    return Performed(position=placed.position + 1, action=trace.actions[placed.position], outcome=outcome, seen=seen)
