"""Generator of random walks: actions drawn from a seed. The less often a kind was taken, the likelier it is drawn."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from lockstep.stepper.driver.actions import (
    AddPartition,
    Ask,
    AskEpochEnd,
    AskMetadata,
    Cut,
    Elect,
    EndTransaction,
    Identity,
    InitProducer,
    InTransaction,
    Kill,
    Mend,
    Pause,
    Reach,
    Read,
    Reassign,
    Resume,
    Sender,
    SetMinIsr,
    Start,
    Step,
    Stop,
    Until,
    Wait,
    Write,
)
from lockstep.stepper.driver.situation import Situation
from lockstep.stepper.walk.group_generator import drawn

LARGE = 150
"""Above this belief size the walk reads every replica's whole log, which rules out most states."""
CONFUSED = 1_000
"""Above this belief size no further broker is killed, stopped or paused: too many faults at once explain anything."""
PRODUCERS = (9001, 9002)
"""Producer ids of idempotent producers. No broker allocated them: a leader does not check where an id comes from."""
SHARE = 0.35
"""Weight of all transactional actions, and of all consumer actions, relative to all other actions together."""
DISTURBED = 2
"""How many brokers may be stopped or paused at once."""


class _Choice:
    """One or more actions that are drawn together, and their initial weight."""

    def __init__(self, name: str, weight: float, *steps: Step) -> None:
        self.name, self.weight, self.steps = name, weight, steps


@dataclass(kw_only=True)
class Walk:
    """Draws actions. The weight of a kind falls with the number of times it was drawn."""

    seed: int
    taken: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed)  # noqa: S311 - a walk can be taken again
        self._next: list[Step] = []
        self._sent: dict[int, tuple[int, int]] = {}
        """Latest epoch and sequence number that each idempotent producer has sent."""
        self._in_transaction = 0
        """Number of requests sent since the last InitProducerId or EndTxn."""
        self._looked = 0
        """Belief size when all replicas were last read: what reads cannot rule out stays in the belief."""

    def step(self, situation: Situation) -> Step:
        """The next action in this situation."""
        self._looked = min(self._looked, situation.belief)
        if not self._next:
            chosen = self._chosen(situation)
            self.taken[chosen.name] += 1
            self._next = list(chosen.steps)
        step = self._next.pop(0)
        self._remember(step)
        return step

    def _chosen(self, now: Situation) -> _Choice:
        """Read all replicas if the belief has grown; otherwise draw an action.

        Transactional and consumer actions have a fixed share (`SHARE`), however many of them are possible.
        """
        if now.belief > max(LARGE, 2 * self._looked) and now.running:
            self._looked = now.belief
            looks = [Read(broker=broker, offset=0, reach=Reach.LOG_END) for broker in sorted(now.running)]
            return _Choice("look at everyone", 1, *looks)
        choices = list(self._of_partition(now))
        weights = list(map(self._likely, choices))
        total = sum(weights)
        for others in (list(self._transactions(now)), list(self._consumers(now))):
            likely = list(map(self._likely, others))
            share = SHARE * total / sum(likely) if likely else 0
            choices += others
            weights += [weight * share for weight in likely]
        return self._draw.choices(choices, weights)[0]

    def _likely(self, choice: _Choice) -> float:
        return choice.weight / math.sqrt(1 + self.taken[choice.name])

    def _of_partition(self, now: Situation) -> Iterator[_Choice]:
        """Requests to replicas, faults, and the end of faults."""
        yield from self._requests(now)
        yield from self._faults(now)
        yield from self._returns(now)

    def _consumers(self, now: Situation) -> Iterator[_Choice]:
        if now.groups is not None:
            for name, weight, step in drawn(self._draw, now.groups, now.running):
                yield _Choice(name, weight, step)

    def _requests(self, now: Situation) -> Iterator[_Choice]:
        anyone = self._draw.choice(sorted(now.running)) if now.running else None
        if now.led and now.belief <= LARGE:  # each write makes the belief larger
            for acks in (1, 0, *((-1,) if now.may_leave_open else ())):
                records = self._draw.randint(1, 3)
                yield _Choice(f"write acks={acks}", 60, Write(broker=now.leader, acks=acks, records=records))
        if now.led:
            yield _Choice("ask for an epoch's end", 20, self._epoch_end(now))
            yield _Choice("elect", 4, Elect())
            order = self._draw.sample(now.brokers, len(now.brokers))
            yield _Choice("reassign in another order", 3, Reassign(replicas=tuple(order)))
            yield _Choice("reassign to fewer", 2, Reassign(replicas=tuple(order[:-1])))
            yield from self._settings(now)
        if anyone is None:
            return
        if now.led and now.belief <= LARGE:
            name, sender = self._sender()
            yield _Choice(f"write {name}", 25, Write(broker=now.leader, acks=1, sender=sender))
        yield _Choice("write damaged", 10, self._damaged(now, anyone))
        others = sorted(now.running - {now.leader})
        if others:
            acks = self._draw.choice((1, 0))
            yield _Choice("write to a follower", 10, Write(broker=self._draw.choice(others), acks=acks))
        for reach in Reach:
            yield _Choice(f"read to the {reach}", 40, self._read(now, anyone, reach))
            ask = Ask(broker=anyone, reach=reach, leader_epoch=self._epoch(now))
            yield _Choice(f"ask for the {reach}", 20, ask)
        yield _Choice("ask for metadata", 20, AskMetadata(broker=anyone))
        yield _Choice("ask for the log start", 5, Ask(broker=anyone, earliest=True))

    def _settings(self, now: Situation) -> Iterator[_Choice]:
        """A new min.insync.replicas, only while all brokers run: a broker applies the old value until it learns it."""
        if len(now.running) == len(now.brokers):
            others = [value for value in range(1, len(now.brokers) + 1) if value != now.min_isr]
            yield _Choice("set min.insync.replicas", 3, SetMinIsr(value=self._draw.choice(others)))

    def _transactions(self, now: Situation) -> Iterator[_Choice]:
        """Actions of the transactional producer, mostly in the right order and with its own producer id and epoch."""
        if now.coordinating or not now.may_leave_open or now.belief > LARGE:
            return
        away = len(now.brokers) - len(now.running)
        if away > 1 or now.paused or now.cut:  # the coordinator's log could not be replicated
            return
        if not now.identified:
            if len(now.running) == len(now.brokers) and not now.cut:  # __transaction_state must be created first
                yield _Choice("begin as a producer", 1, InitProducer())
            return
        yield _Choice("begin as a producer", 6, InitProducer())
        yield _Choice("go on as a producer", 6, InitProducer(identity=self._identity()))
        begun = self._in_transaction > 0
        if now.adds_partitions or self._draw.random() < 0.2:
            yield _Choice("add the partition", 10 if begun else 40, AddPartition(identity=self._identity()))
        if now.led:
            sequences = self._draw.choice([0, 0, 0, 0, -1, 2])
            transaction = InTransaction(identity=self._identity(), sequences=sequences)
            records = self._draw.randint(1, 2)
            write = Write(broker=now.leader, acks=-1, records=records, transaction=transaction)
            yield _Choice("write in a transaction", 60 if begun or not now.adds_partitions else 10, write)
        for commit in (True, False):
            end = EndTransaction(commit=commit, identity=self._identity())
            yield _Choice("commit" if commit else "abort", 30 if self._in_transaction > 1 else 5, end)

    def _identity(self) -> Identity:
        """The producer id and epoch of a request: mostly the right ones."""
        wrong = [Identity(epochs=-1), Identity(epochs=1), Identity(stranger=True)]
        return self._draw.choice([*(Identity() for _ in range(9)), *wrong])

    def _faults(self, now: Situation) -> Iterator[_Choice]:
        if now.led:
            for follower in sorted(frozenset(now.brokers) - {now.leader}):
                if (follower, now.leader) not in now.cut:
                    yield _Choice("cut", 8, Cut(follower=follower, leader=now.leader))
            if any((follower, now.leader) in now.cut for follower in now.isr):
                yield _Choice("wait for the ISR to shrink", 20, Wait(until=Until.SHRUNK))
        away = len(now.brokers) - len(now.running)
        if away >= DISTURBED or not now.running or now.belief > CONFUSED:
            return
        victim = now.leader if now.led and self._draw.random() < 0.5 else self._draw.choice(sorted(now.running))
        yield _Choice("kill", 4, Kill(broker=victim))
        yield _Choice("stop", 4, Stop(broker=victim))
        yield _Choice("pause", 6, Pause(broker=victim))

    def _returns(self, now: Situation) -> Iterator[_Choice]:
        for follower, leader in sorted(now.cut):
            yield _Choice("mend", 6, Mend(follower=follower, leader=leader))
        for broker in sorted(now.paused):
            yield _Choice("resume", 10, Resume(broker=broker))
        for broker in sorted(now.ended):
            yield _Choice("start", 10, Start(broker=broker))
        if not now.led and now.will_be_led:
            yield _Choice("wait for a leader", 30, Wait(until=Until.LED))
        if now.open_writes:
            yield _Choice("wait for answers", 10, Wait(until=Until.ANSWERS))
        if now.led and not now.cut and now.running - now.isr and not now.paused:
            yield _Choice("wait for the ISR to grow", 20, Wait(until=Until.IN_SYNC))

    def _sender(self) -> tuple[str, Sender]:
        """Producer id, epoch and sequence number of an idempotent producer's next batch, right or wrong."""
        producer_id = self._draw.choice(PRODUCERS)
        epoch, sequence = self._sent.get(producer_id, (0, -1))
        name, epoch, sequence = self._draw.choice(
            [
                ("in sequence", epoch, sequence + 1),
                ("in sequence", epoch, sequence + 1),
                ("again", epoch, max(sequence, 0)),
                ("from long ago", epoch, max(sequence - 6, 0)),
                ("out of sequence", epoch, sequence + 3),
                ("in the next epoch", epoch + 1, 0),
                ("in an old epoch", max(epoch - 1, 0), sequence + 1),
            ]
        )
        return name, Sender(producer_id=producer_id, epoch=epoch, sequence=sequence)

    def _damaged(self, now: Situation, broker: int) -> Step:
        """A batch with a wrong CRC, to any broker, with or without a producer id."""
        acks = self._draw.choice((1, 0, -1) if now.may_leave_open else (1, 0))
        sender = self._draw.choice((None, self._sender()[1]))
        return Write(broker=broker, acks=acks, sender=sender, corrupt=True)

    def _remember(self, step: Step) -> None:
        """Record what a producer has sent. The broker may have rejected it."""
        if isinstance(step, Write) and step.sender is not None and not step.corrupt:
            before = self._sent.get(step.sender.producer_id, (0, -1))
            self._sent[step.sender.producer_id] = max(before, (step.sender.epoch, step.sender.sequence))
        match step:
            case InitProducer() | EndTransaction():
                self._in_transaction = 0
            case AddPartition() | Write(transaction=InTransaction()):
                self._in_transaction += 1

    def _read(self, now: Situation, broker: int, reach: Reach) -> Step:
        offset = self._draw.randint(0, now.written + 1)
        return Read(broker=broker, offset=offset, reach=reach, leader_epoch=self._epoch(now))

    def _epoch_end(self, now: Situation) -> Step:
        broker = self._draw.choice(sorted(now.running))
        epoch = self._draw.randint(0, now.leader_epoch + 1)
        return AskEpochEnd(broker=broker, epoch=epoch, leader_epoch=self._epoch(now))

    def _epoch(self, now: Situation) -> int | None:
        """The currentLeaderEpoch of a request: mostly the right one, or none."""
        wrong = [max(0, now.leader_epoch - 1), now.leader_epoch + 1]
        return self._draw.choice([None, None, now.leader_epoch, now.leader_epoch, now.leader_epoch, *wrong])
