"""Histories that a correct cluster could have produced, from a seed: for warming up, for measuring, and for damaging.

A toy log per partition, with logical time: writers in batches, a leader that dies for a while (sends then have unknown
outcomes, and some of them happened), readers that follow, and a final reader. Nothing here looks at a clock.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from lockstep.history.lines import FaultLine, ObservationLine, OperationLine, ProcessLine, RecordLine
from lockstep.history.recorder import Recorder
from lockstep.history.schema import FINAL_READ, Direction, Outcome, Role, value_id
from lockstep.history.store import seal

TOPIC = "orders"
TOPIC_ID = "c3ludGhldGljLW9yZGVycw"
_BATCH = 50
_POLL_MAX = 200
_TICK_NS = 1_000_000
_FAULT = (0.4, 0.5)  # the part of the run in which the leader of partition 0 is dead


@dataclass(slots=True, kw_only=True)
class _Toy:
    """The state of one synthetic run."""

    recorder: Recorder
    random: random.Random
    logs: list[list[int]]
    now_ns: int = _TICK_NS
    next_offset: dict[tuple[int, int], int] = field(default_factory=dict)

    def tick(self) -> int:
        self.now_ns += self.random.randint(_TICK_NS // 4, _TICK_NS)
        return self.now_ns


def synthesise(
    run_directory: Path, *, sends: int, seed: int = 0, writers: int = 3, readers: int = 2, partitions: int = 3
) -> None:
    """Write a sealed, legal run of `sends` acknowledged or unknown sends, read by everybody."""
    run = f"synthetic-{sends}-{seed}"
    with Recorder(run_directory, run) as recorder:
        toy = _Toy(recorder=recorder, random=random.Random(seed), logs=[[] for _ in range(partitions)])  # noqa: S311
        _run(toy, sends=sends, writers=writers, readers=readers)
    seal(run_directory)
    info = {
        "run": run,
        "scenario": "synthetic",
        "seed": seed,
        "phases": [{"name": "load", "start_ns": 0, "end_ns": toy.now_ns}],
    }
    (run_directory / "run.json").write_bytes(msgspec.json.format(msgspec.json.encode(info)) + b"\n")


def _run(toy: _Toy, *, sends: int, writers: int, readers: int) -> None:
    writing = [toy.recorder.next_process() for _ in range(writers)]
    reading = [toy.recorder.next_process() for _ in range(readers)]
    for process in writing:
        toy.recorder.process(
            ProcessLine(process=process, role=Role.WRITER, client="synthetic", acks=-1, idempotent=True)
        )
    for process in reading:
        toy.recorder.process(ProcessLine(process=process, role=Role.READER, client="synthetic"))
        _assign(toy, process)
    _observe(toy, leader=1, leader_epoch=0, isr=[1, 2, 3])
    sequences = dict.fromkeys(writing, 0)
    begin, end = (int(part * sends) // _BATCH for part in _FAULT)
    for batch in range(-(-sends // _BATCH)):
        if batch == begin:
            _fault(toy, "inject")
            _observe(toy, leader=2, leader_epoch=1, isr=[2, 3])
        if batch == end:
            _fault(toy, "healed")
            _observe(toy, leader=2, leader_epoch=1, isr=[1, 2, 3])
        process = writing[batch % writers]
        count = min(_BATCH, sends - batch * _BATCH)
        _send(toy, process, sequences[process], count, failing=begin <= batch < end)
        sequences[process] += count
        _poll(toy, reading[batch % readers])
    final = toy.recorder.next_process()
    toy.recorder.process(ProcessLine(process=final, role=Role.FINAL, client="synthetic"))
    _assign(toy, final)
    for process in (*reading, final):
        while _poll(toy, process):
            pass
    _prove_ends(toy)


def _send(toy: _Toy, process: int, sequence: int, count: int, *, failing: bool) -> None:
    ops = toy.recorder.reserve_ops(count)
    invoke_ns = toy.tick()
    to = [toy.random.randrange(len(toy.logs)) for _ in ops]
    values = [value_id(process, sequence + index) for index in range(count)]
    toy.recorder.write(
        "operations", [OperationLine(op=op, process=process, kind="send", invoke_ns=invoke_ns) for op in ops]
    )
    toy.recorder.write(
        "records",
        [
            RecordLine(
                op=op,
                position=0,
                direction=Direction.SENT,
                topic=TOPIC,
                topic_id=TOPIC_ID,
                partition=partition,
                value=value,
            )
            for op, partition, value in zip(ops, to, values, strict=True)
        ],
    )
    operations, records = [], []
    for op, partition, value in zip(ops, to, values, strict=True):
        unknown = failing and partition == 0
        if not unknown or toy.random.random() < 0.5:
            toy.logs[partition].append(value)
        error = "_TIMED_OUT" if unknown else None
        outcome = Outcome.UNKNOWN if unknown else Outcome.OK
        operations.append(OperationLine(op=op, return_ns=toy.tick(), outcome=outcome, error=error))
        if not unknown:
            records.append(RecordLine(op=op, position=0, offset=len(toy.logs[partition]) - 1))
    toy.recorder.write("operations", operations)
    toy.recorder.write("records", records)


def _poll(toy: _Toy, process: int) -> int:
    (op,) = toy.recorder.reserve_ops(1)
    invoke_ns = toy.tick()
    lines = [
        RecordLine(
            op=op,
            position=position,
            direction=Direction.READ,
            topic=TOPIC,
            topic_id=TOPIC_ID,
            partition=partition,
            offset=offset,
            value=toy.logs[partition][offset],
        )
        for position, (partition, offset) in enumerate(_take(toy, process))
    ]
    toy.recorder.write(
        "operations",
        [
            OperationLine(
                op=op, process=process, kind="poll", invoke_ns=invoke_ns, return_ns=toy.tick(), outcome=Outcome.OK
            )
        ],
    )
    toy.recorder.write("records", lines)
    return len(lines)


def _take(toy: _Toy, process: int) -> Iterator[tuple[int, int]]:
    room = _POLL_MAX
    for partition, log in enumerate(toy.logs):
        first = toy.next_offset.get((process, partition), 0)
        stop = min(first + room, len(log))
        toy.next_offset[process, partition] = stop
        room -= stop - first
        for offset in range(first, stop):
            yield partition, offset


def _assign(toy: _Toy, process: int) -> None:
    (op,) = toy.recorder.reserve_ops(1)
    now_ns = toy.tick()
    line = OperationLine(
        op=op, process=process, kind="assign", invoke_ns=now_ns, return_ns=now_ns + 1, outcome=Outcome.OK
    )
    toy.recorder.write("operations", [line])


def _observe(toy: _Toy, *, leader: int, leader_epoch: int, isr: list[int]) -> None:
    now_ns = toy.tick()
    toy.recorder.write(
        "observations",
        [
            ObservationLine(
                asked_ns=now_ns,
                answered_ns=now_ns + 1,
                source="metadata",
                node=node,
                topic=TOPIC,
                topic_id=TOPIC_ID,
                partition=partition,
                leader=leader if partition == 0 else 2,
                leader_epoch=leader_epoch if partition == 0 else 0,
                isr=isr,
            )
            for node in (2, 3)
            for partition in range(len(toy.logs))
        ],
    )


def _fault(toy: _Toy, phase: str) -> None:
    line = FaultLine(
        time_ns=toy.tick(),
        step=0,
        fault="kill",
        target_asked=f"leader of {TOPIC}-0",
        target_resolved="broker-1",
        phase=phase,
        proof='{"leader_after":2}' if phase == "inject" else None,
    )
    toy.recorder.write("faults", [line])


def _prove_ends(toy: _Toy) -> None:
    now_ns = toy.tick()
    toy.recorder.write(
        "observations",
        [
            ObservationLine(
                asked_ns=now_ns,
                answered_ns=now_ns + 1,
                source=FINAL_READ,
                topic=TOPIC,
                topic_id=TOPIC_ID,
                partition=partition,
                log_start=0,
                log_end=len(log),
                extra=f'{{"position":{len(log)}}}',
            )
            for partition, log in enumerate(toy.logs)
        ],
    )
