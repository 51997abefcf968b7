"""All rows of one partition, written slice by slice as one part of every table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lockstep.history.schema import FINAL_READ, OBSERVATIONS, SEALED
from lockstep.simulation import tables
from lockstep.simulation.batches import slices
from lockstep.simulation.bugs import planting_in
from lockstep.simulation.groups import GROUP
from lockstep.simulation.log import NOTHING, Log, LogFiller, Sends, Steps
from lockstep.simulation.parquet import PartWriter
from lockstep.simulation.planter import Planted, Planting
from lockstep.simulation.readers import Commit, PartitionReaders, Polls, View, taken
from lockstep.simulation.skeleton import POLL_MAX, TOPIC, TOPIC_ID, PartitionPlan, Skeleton
from lockstep.simulation.timeline import MS, Ints

PROBE = "replica-probe"
"""Source of observations of one replica's own offsets."""
_PROBES_MAX = 100
_PROBE_NS = MS // 2

TABLES = ("operations", "records-sent", "records-read", "records-committed", "observations")
"""Of which every partition has a part."""


def part_path(directory: Path, table: str, number: int) -> Path:
    return directory / f"{table}.{number}.part"


def write_partition(skeleton: Skeleton, number: int, directory: Path) -> Planted | None:
    """Make the rows of one partition, with the bug if that is to be planted in it."""
    plan = skeleton.partitions[number]
    planting = planting_in(skeleton, number)
    writers = {table: PartWriter(part_path(directory, table, number), SEALED[table]) for table in TABLES}
    for rows in _Partition(skeleton=skeleton, plan=plan, planting=planting).rows():
        for table, content in rows.items():
            writers[table].write(content)
    for writer in writers.values():
        writer.close()
    return planting.finished() if planting else None


@dataclass(slots=True, kw_only=True)
class _Partition:
    skeleton: Skeleton
    plan: PartitionPlan
    planting: Planting | None
    numbered: int = 0
    """How many operations have their number."""
    probed: int = 0
    final_seen: int = 0
    """How many records the final reader's last poll has so far."""
    final_poll: int = -1

    def rows(self) -> Iterator[dict[str, pa.Table]]:
        filler = LogFiller(skeleton=self.skeleton, plan=self.plan)
        readers = PartitionReaders(skeleton=self.skeleton, plan=self.plan)
        before_ns = 0
        for one in slices(self.skeleton, self.plan):
            filled = filler.fill(one)
            if self.planting:
                self.planting.in_log(filled, filler)
            polls, commits = readers.read(filled, one.chance, before_ns, one.until_ns)
            final = self._final(filled.log)
            if self.planting:
                self.planting.in_reads([*polls, final], commits)
            assert readers.steps is not None
            probes = self._probes(readers.steps, one.until_ns)
            if self.planting:
                self.planting.in_probes(probes)
            yield self._tables(filled.sends, polls, commits, final, probes)
            before_ns = one.until_ns
        yield self._ends(filler.end)

    def _final(self, log: Log) -> Polls:
        """Polls of the final reader for these offsets: they come later, and their size is known."""
        first, last = log.base // POLL_MAX, max(log.end - 1, log.base) // POLL_MAX
        number = np.arange(first, last + 1)
        begin = self.plan.final_ns + number * self.skeleton.final_poll_ns
        bounds = np.clip(np.arange(first, last + 2) * POLL_MAX, log.base, log.end)
        return Polls(
            process=self.skeleton.final_reader,
            view=View.FINAL,
            generation=NOTHING,
            start=log.base,
            invoke_ns=begin,
            return_ns=begin + self.skeleton.final_poll_ns * 3 // 4,
            end=bounds[1:],
            **taken(log, View.FINAL, bounds),
        )

    def _probes(self, steps: Steps, until_ns: int) -> list[dict[str, Any]]:
        """Probes of the leader's high watermark and last stable offset, now and then while there is a leader."""
        found = []
        span_ns = (self.skeleton.drained_ns - self.skeleton.start_ns) // _PROBES_MAX
        while self.probed < _PROBES_MAX:
            time_ns = self.skeleton.start_ns + self.probed * span_ns + span_ns // 2
            if time_ns >= until_ns:
                break
            self.probed += 1
            if not any(gap.start_ns - MS <= time_ns <= gap.settled_ns for gap in self.plan.timeline.outages):
                found.append(self._probe(steps, time_ns))
        return found

    def _probe(self, steps: Steps, time_ns: int) -> dict[str, Any]:
        reign = next(one for one in reversed(self.plan.timeline.reigns) if one.start_ns <= time_ns)
        now = np.array([time_ns])
        columns = {
            "high_watermark": steps.committed_ns,
            "log_end": steps.appended_ns,
            "last_stable_offset": steps.stable_ns,
        }
        return {
            "asked_ns": time_ns - _PROBE_NS,
            "answered_ns": time_ns + _PROBE_NS,
            "source": PROBE,
            "node": reign.leader,
            **self._place(),
            "leader": reign.leader,
            "leader_epoch": reign.leader_epoch,
            "log_start": 0,
            **{name: int(steps.end_by(column, now)[0]) for name, column in columns.items()},
        }

    def _place(self) -> dict[str, Any]:
        return {"topic": TOPIC, "topic_id": TOPIC_ID, "partition": self.plan.partition}

    def _tables(
        self,
        sends: Sends,
        polls: Sequence[Polls],
        commits: Sequence[Commit],
        final: Polls,
        probes: list[dict[str, Any]],
    ) -> dict[str, pa.Table]:
        run, partition = self.skeleton.settings.run, self.plan.partition
        times = [sends.invoke_ns, *(one.invoke_ns for one in polls), np.array([one.invoke_ns for one in commits])]
        of_sends, *of_polls, of_commits = self._numbers(times)
        of_final = self._final_ops()[self._first_final(final) :]
        if self.planting:
            self.planting.numbered(sends, of_sends, [*polls, final], [*of_polls, of_final], commits, of_commits)
        names, producer = self._producers(sends)
        operations = [tables.of_send_operations(run, sends, of_sends, names)]
        operations += [tables.of_poll_operations(run, one, op, GROUP) for one, op in zip(polls, of_polls, strict=True)]
        operations.append(tables.of_commit_operations(run, commits, of_commits, GROUP))
        read = [tables.of_polls(run, partition, one, op) for one, op in zip(polls, of_polls, strict=True)]
        return {
            "operations": pa.concat_tables(operations),
            "records-sent": tables.of_sends(run, partition, sends, of_sends, producer),
            "records-read": pa.concat_tables([*read, tables.of_polls(run, partition, self._joined(final), of_final)]),
            "records-committed": tables.of_commits(run, partition, commits, of_commits),
            "observations": _observations(run, probes),
        }

    def _numbers(self, times: Sequence[Ints]) -> list[Ints]:
        """Operations are numbered in the order of their invocation."""
        every = np.concatenate(times)
        rank = np.empty(len(every), dtype=np.int64)
        rank[np.argsort(every, kind="stable")] = np.arange(len(every))
        ops = self._op(self.numbered + rank)
        self.numbered += len(every)
        return np.split(ops, np.cumsum([len(one) for one in times])[:-1])

    def _op(self, number: Ints) -> Ints:
        """Unique in the run: the last of each round of numbers is for what belongs to no partition."""
        return number * (self.skeleton.settings.partitions + 1) + self.plan.partition

    def _final_ops(self) -> Ints:
        others = self.plan.ops + 2 * self.skeleton.lattice.slots
        return self._op(others + np.arange(self.plan.final_polls))

    def _first_final(self, final: Polls) -> int:
        return int((final.invoke_ns[0] - self.plan.final_ns) // self.skeleton.final_poll_ns)

    def _joined(self, final: Polls) -> Polls:
        """Where a poll began in the slice before, its positions go on."""
        first = self._first_final(final)
        if first == self.final_poll:
            final.position[final.poll == 0] += self.final_seen
        last = len(final.invoke_ns) - 1
        seen = int((final.poll == last).sum())
        self.final_seen = seen + (self.final_seen if first + last == self.final_poll else 0)
        self.final_poll = first + last
        return final

    def _producers(self, sends: Sends) -> tuple[pa.Array[Any], tuple[Ints, Ints]]:
        """The transactional id, the producer id and the producer epoch of each send."""
        found = [(one.transaction.transactional_id, *one.transaction.producer) for one in self.plan.parts]
        refused = {one.process: len(found) + place for place, one in enumerate(self.plan.refused)}
        found += [(one.transactional_id, *one.producer) for one in self.plan.refused]
        row = sends.part.copy()
        for process, place in refused.items():
            row[(sends.process == process) & (sends.part < 0)] = place
        ids = np.array([one[1] for one in found] + [NOTHING])
        epochs = np.array([one[2] for one in found] + [NOTHING])
        return tables.words(row % (len(found) + 1), [one[0] for one in found] + [None]), (ids[row], epochs[row])

    def _ends(self, log_end: int) -> dict[str, pa.Table]:
        """The final reader's polls, and its proof that it got to the end."""
        run = self.skeleton.settings.run
        number = np.arange(self.plan.final_polls)
        begin = self.plan.final_ns + number * self.skeleton.final_poll_ns
        empty = np.zeros(0, dtype=np.int64)
        polls = Polls(
            self.skeleton.final_reader,
            View.FINAL,
            NOTHING,
            0,
            begin,
            begin + self.skeleton.final_poll_ns * 3 // 4,
            empty, empty, empty, empty, empty, empty, empty,
        )  # fmt: skip
        asked_ns = int(begin[-1]) + self.skeleton.final_poll_ns
        proof = {
            "asked_ns": asked_ns,
            "answered_ns": asked_ns + _PROBE_NS,
            "source": FINAL_READ,
            **self._place(),
            "log_start": 0,
            "log_end": log_end,
            "extra": f'{{"position":{log_end}}}',
        }
        return {
            "operations": tables.of_poll_operations(run, polls, self._final_ops(), GROUP),
            "observations": _observations(run, [proof]),
        }


def _observations(run: str, rows: Sequence[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{"run": run} | row for row in rows], schema=OBSERVATIONS)
