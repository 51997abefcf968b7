"""One partition's log, batch by batch, and the responses that its producers got."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from lockstep.history.schema import SEQUENCE_BITS, Outcome
from lockstep.simulation.batches import IN_LOG, Batches, Fate, Kind, Slice
from lockstep.simulation.skeleton import PartitionPlan, Skeleton
from lockstep.simulation.timeline import MS, Ints
from lockstep.simulation.transactions import ANSWER_MAX_NS, REPLICATION_MAX_NS

NOTHING = -1
"""An offset or a value that is null."""
_BEGIN_NS = MS // 4
"""After this a client's call to begin a transaction has certainly returned."""


@dataclass(slots=True)
class Sends:
    """Columns, a row for each send of a slice, in the order in which batches are appended."""

    process: Ints
    value: Ints
    offset: Ints
    invoke_ns: Ints
    return_ns: Ints
    outcome: Ints
    error: Ints
    """0 is none; see `ERRORS`."""
    epoch: Ints
    """The leader's, where there was an answer."""
    part: Ints
    batch: Ints
    """Its row in the slice."""
    fate: Ints


ERRORS = (None, "_TIMED_OUT", "_QUEUE_FULL", "INVALID_PRODUCER_EPOCH")
_TIMED_OUT, _QUEUE_FULL, _FENCED = 1, 2, 3


@dataclass(slots=True)
class Log:
    """Columns, a row for each offset from `base` on."""

    value: Ints
    data: npt.NDArray[np.bool_]
    """Whether the offset has a record, and not a transaction marker."""
    committed: npt.NDArray[np.bool_]
    """Whether a reader of committed records is given it."""
    epoch: Ints
    part: Ints
    timestamp_ms: Ints
    base: int = 0

    @property
    def end(self) -> int:
        return self.base + len(self.value)

    def after(self, base: int, later: Log) -> Log:
        """From this offset on, and with what came later."""
        columns: dict[str, Any] = {
            one.name: np.concatenate([getattr(self, one.name)[base - self.base :], getattr(later, one.name)])
            for one in fields(self)
            if one.name != "base"
        }
        return Log(**columns, base=base)


@dataclass(slots=True)
class Steps:
    """When each batch was appended, and passed by the high watermark and the last stable offset, in log order."""

    appended_ns: Ints
    committed_ns: Ints
    stable_ns: Ints
    end: Ints
    """The offset after the batch."""

    def after(self, time_ns: int, later: Steps) -> Steps:
        """Without the records that every reader can see by then, and with the later ones."""
        first = max(int(np.searchsorted(self.stable_ns, time_ns, side="right")) - 1, 0)  # tells where the log was then
        return Steps(
            *(np.concatenate([getattr(self, one.name)[first:], getattr(later, one.name)]) for one in fields(self))
        )

    def end_by(self, column: Ints, time_ns: Ints) -> Ints:
        """Of the log, by these times, as far as this column says so."""
        ends = np.concatenate([[0], self.end])
        return ends[np.searchsorted(column, time_ns, side="right")]


@dataclass(slots=True, kw_only=True)
class Filled:
    """A slice with its rows."""

    sends: Sends
    log: Log
    steps: Steps


@dataclass(slots=True, kw_only=True)
class LogFiller:
    """Gives batches their offsets and times, slice after slice."""

    skeleton: Skeleton
    plan: PartitionPlan
    end: int = 0
    committed_ns: int = 0
    stable_ns: int = 0
    sent: Ints = field(init=False)
    """By process, how many records it has sent here."""
    last_ns: Ints = field(init=False)
    """By process, when it handed its last batch to the network."""

    def __post_init__(self) -> None:
        assert all(one.refused is not None and one.refused.error == ERRORS[_FENCED] for one in self.plan.refused)
        processes = len(self.skeleton.processes) + 1
        self.sent = np.zeros(processes, dtype=np.int64)
        self.last_ns = np.zeros(processes, dtype=np.int64)

    def fill(self, one: Slice) -> Filled:
        batches = one.batches
        in_log = np.isin(batches.fate, IN_LOG)
        sizes = np.where(in_log, batches.size, 0)
        first = self.end + np.cumsum(sizes) - sizes
        self.end += int(sizes.sum())
        committed_ns, stable_ns = self._seen(one.chance, batches)
        sends = self._sends(one.chance, batches, first, committed_ns)
        kept = batches.take(in_log)
        steps = Steps(kept.actual, committed_ns[in_log], stable_ns[in_log], (first + sizes)[in_log])
        return Filled(
            sends=sends, log=self._log(batches, in_log, sends, int(first[0]) if len(first) else 0), steps=steps
        )

    def _seen(self, chance: np.random.Generator, batches: Batches) -> tuple[Ints, Ints]:
        """When the high watermark, and when the last stable offset is past each batch."""
        took = np.clip(chance.lognormal(np.log(2 * MS), 0.5, len(batches)), MS // 5, REPLICATION_MAX_NS)
        replicated = np.maximum.accumulate(np.maximum(batches.actual + took.astype(np.int64), self.committed_ns))
        for outage in self.plan.timeline.outages:
            if outage.lost_from_ns < outage.start_ns:  # what the next leader has was replicated in time
                had = (batches.actual < outage.lost_from_ns) & (replicated >= outage.start_ns)
                replicated[had] = outage.start_ns - 1
        committed = np.maximum.accumulate(self.plan.timeline.commits(replicated))
        stable = np.array([part.stable_ns for part in self.plan.parts], dtype=np.int64)
        opens = (batches.first == 1) & (batches.part >= 0)
        held = committed.copy()
        held[opens] = np.maximum(committed[opens], stable[batches.part[opens]])
        held = np.maximum.accumulate(np.maximum(held, self.stable_ns))
        if len(batches):
            self.committed_ns, self.stable_ns = int(replicated[-1]), int(held[-1])
        return committed, held

    def _sends(self, chance: np.random.Generator, batches: Batches, first: Ints, committed_ns: Ints) -> Sends:
        data = np.flatnonzero(batches.kind != Kind.MARKER)
        mine = batches.take(data)
        begin_ns, end_ns, counted = self._handed(chance, mine)
        answer_ns = self._answered(chance, mine, committed_ns[data])
        row = np.repeat(np.arange(len(mine)), mine.size)
        rank = np.arange(len(row)) - np.repeat(np.cumsum(mine.size) - mine.size, mine.size)
        invoke_ns = begin_ns[row] + (end_ns - begin_ns)[row] * (rank + 1) // (mine.size[row] + 1)
        sequence = (counted[row] + rank) * self.skeleton.settings.partitions + self.plan.partition
        fate, process = mine.fate[row], mine.process[row]
        fenced = (fate == Fate.REFUSED) & (mine.kind[row] == Kind.TRANSACTIONAL)
        local = (fate == Fate.REFUSED) & ~fenced
        acked = (fate == Fate.ACKED) | (fate == Fate.LOST)
        silent = (fate == Fate.SILENT) | (fate == Fate.GONE)
        offset = np.where(fate == Fate.LOST, self._lost(mine, batches, first)[row], first[data][row]) + rank
        return Sends(
            process=process,
            value=process << SEQUENCE_BITS | sequence,
            offset=np.where(acked, offset, NOTHING),
            invoke_ns=invoke_ns,
            return_ns=np.where(local, invoke_ns + 30_000, answer_ns[row] + rank * 200),
            outcome=np.where(acked, Outcome.OK, np.where(silent, Outcome.UNKNOWN, Outcome.FAIL)),
            error=np.where(silent, _TIMED_OUT, np.where(local, _QUEUE_FULL, np.where(fenced, _FENCED, 0))),
            epoch=np.where(acked, self._epoch(mine.actual)[row], NOTHING),
            part=mine.part[row],
            batch=data[row],
            fate=fate,
        )

    def _handed(self, chance: np.random.Generator, mine: Batches) -> tuple[Ints, Ints, Ints]:
        """When the first and the last record of each batch were sent, and how many its client had sent before."""
        order = np.lexsort((mine.nominal, mine.process))
        process, nominal, size = mine.process[order], mine.nominal[order], mine.size[order]
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = process[1:] != process[:-1]
        before_ns = np.where(new, self.last_ns[process], np.concatenate([[0], nominal[:-1]]))
        room_ns = np.minimum(chance.integers(MS // 2, 5 * MS, len(order)), np.maximum(nominal - before_ns, 0))
        begin = nominal - (room_ns * chance.uniform(0.6, 0.95, len(order))).astype(np.int64)
        end = nominal - (room_ns * chance.uniform(0.02, 0.3, len(order))).astype(np.int64)
        total = np.cumsum(size) - size
        started = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
        counted = self.sent[process] + total - total[started]
        np.maximum.at(self.last_ns, process, nominal)
        np.add.at(self.sent, process, size)
        back = np.empty(len(order), dtype=np.int64)
        back[order] = np.arange(len(order))
        begin, end, counted = begin[back], end[back], counted[back]
        begun = np.array([part.transaction.begin_ns for part in self.plan.parts], dtype=np.int64)
        inside = mine.part >= 0
        begin[inside] = np.maximum(begin[inside], begun[mine.part[inside]] + _BEGIN_NS)
        return begin, np.maximum(end, begin), counted

    def _answered(self, chance: np.random.Generator, mine: Batches, committed_ns: Ints) -> Ints:
        took = np.clip(chance.lognormal(np.log(MS * 0.4), 0.6, len(mine)), MS // 20, ANSWER_MAX_NS).astype(np.int64)
        answer = self.plan.timeline.commits(committed_ns + took)
        weak = mine.process == self.skeleton.writers[-1]
        at_once = mine.actual + took
        for outage in self.plan.timeline.outages:  # a leader that died has responded before, or not at all
            late = (mine.actual < outage.start_ns) & (at_once >= outage.start_ns)
            at_once[late] = outage.start_ns - 1
        answer = np.where(weak, at_once, answer)
        given_up = mine.nominal + chance.integers(1_000 * MS, 2_000 * MS, len(mine))
        silent = (mine.fate == Fate.SILENT) | (mine.fate == Fate.GONE)
        answer = np.where(silent, given_up, answer)
        return np.where(mine.fate == Fate.REFUSED, mine.nominal + took, answer)

    def _lost(self, mine: Batches, batches: Batches, first: Ints) -> Ints:
        """Where lost batches were in the log of the leader that died: after all that the next one has."""
        offset = np.zeros(len(mine), dtype=np.int64)
        for outage in self.plan.timeline.outages:
            rows = np.flatnonzero(
                (mine.fate == Fate.LOST) & (mine.nominal >= outage.lost_from_ns) & (mine.nominal < outage.start_ns)
            )
            if len(rows):
                at = int(np.searchsorted(batches.actual, outage.lost_from_ns))
                sizes = mine.size[rows]
                offset[rows] = (first[at] if at < len(first) else self.end) + np.cumsum(sizes) - sizes
        return offset

    def _epoch(self, time_ns: Ints) -> Ints:
        starts = np.array([reign.start_ns for reign in self.plan.timeline.reigns])
        epochs = np.array([reign.leader_epoch for reign in self.plan.timeline.reigns])
        return epochs[np.searchsorted(starts, time_ns, side="right") - 1]

    def _log(self, batches: Batches, in_log: npt.NDArray[np.bool_], sends: Sends, base: int) -> Log:
        kept = batches.take(in_log)
        row = np.repeat(np.arange(len(kept)), kept.size)
        data = kept.kind[row] != Kind.MARKER
        there = np.isin(sends.fate, IN_LOG)
        value = np.full(len(row), NOTHING, dtype=np.int64)
        value[data] = sends.value[there]
        sent_ns = kept.actual[row]
        sent_ns[data] = sends.invoke_ns[there]
        outcome = np.array([part.transaction.committed for part in self.plan.parts] + [True], dtype=np.bool_)
        return Log(
            value=value,
            data=data,
            committed=data & outcome[kept.part[row]],
            epoch=self._epoch(kept.actual)[row],
            part=kept.part[row],
            timestamp_ms=sent_ns // MS,
            base=base,
        )
