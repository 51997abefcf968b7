"""Tiny histories, written as a sentence per operation.

A `Run` has a clock that ticks once per event, so operations follow each other unless `during` says otherwise. What is
sent is returned as a value, which reads then name: `v = run.send(writer, at=0)`, `run.poll(reader, (0, v))`.
"""

from __future__ import annotations

import json
from pathlib import Path

from lockstep.history import FaultLine, ObservationLine, OperationLine, ProcessLine, Recorder, RecordLine, seal
from lockstep.history.lines import CRASHED
from lockstep.history.schema import FINAL_READ, Direction, Outcome, Role, value_id

TOPIC = "orders"
TOPIC_ID = "b3JkZXJz"

Read = tuple[int, int | None]


class Run:
    """One history under construction."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.recorder = Recorder(directory, directory.name)
        self._now_ns = 0
        self._sequences: dict[int, int] = {}

    def writer(self, *, acks: int | None = -1, idempotent: bool | None = True) -> int:
        process = self.recorder.next_process()
        self.recorder.process(ProcessLine(process=process, role=Role.WRITER, acks=acks, idempotent=idempotent))
        return process

    def reader(self, role: Role = Role.READER) -> int:
        process = self.recorder.next_process()
        self.recorder.process(ProcessLine(process=process, role=role))
        return process

    def send(
        self,
        writer: int,
        *,
        at: int | None = None,
        outcome: Outcome | None = Outcome.OK,
        partition: int = 0,
        during: tuple[int, int] | None = None,
    ) -> int:
        """One send, acknowledged at offset `at` unless told otherwise; outcome None is a send that never returned."""
        sequence = self._sequences.get(writer, 0)
        self._sequences[writer] = sequence + 1
        invoke_ns, return_ns = during or (self.tick(), self.tick())
        op = self.recorder.next_op()
        self.recorder.write("operations", [OperationLine(op=op, process=writer, kind="send", invoke_ns=invoke_ns)])
        value = value_id(writer, sequence)
        self.recorder.write(
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
            ],
        )
        if outcome is not None:
            self.recorder.write("operations", [OperationLine(op=op, return_ns=return_ns, outcome=outcome)])
        if at is not None:
            self.recorder.write("records", [RecordLine(op=op, position=0, offset=at)])
        return value

    def poll(self, process: int, *records: Read, partition: int = 0) -> None:
        op = self._done(process, "poll")
        self.recorder.write(
            "records",
            [
                RecordLine(
                    op=op,
                    position=position,
                    direction=Direction.READ,
                    topic=TOPIC,
                    topic_id=TOPIC_ID,
                    partition=partition,
                    offset=offset,
                    value=value,
                )
                for position, (offset, value) in enumerate(records)
            ],
        )

    def assign(self, process: int, kind: str = "assign") -> None:
        self._done(process, kind)

    def final(
        self, *records: Read, partition: int = 0, start: int = 0, end: int | None = None, reached: int | None = None
    ) -> None:
        """The final reader reads these records, and proves that it got to the end of the partition."""
        self.poll(self.reader(Role.FINAL), *records, partition=partition)
        log_end = end if end is not None else max((offset + 1 for offset, _ in records), default=start)
        position = log_end if reached is None else reached
        self.recorder.write(
            "observations",
            [
                ObservationLine(
                    asked_ns=self.tick(),
                    answered_ns=self.tick(),
                    source=FINAL_READ,
                    topic=TOPIC,
                    topic_id=TOPIC_ID,
                    partition=partition,
                    log_start=start,
                    log_end=log_end,
                    extra=f'{{"position":{position}}}',
                )
            ],
        )

    def plan(
        self,
        *,
        replication: int = 3,
        min_isr: int = 2,
        expect: dict[str, str] | None = None,
        config: dict[str, str] | None = None,
    ) -> None:
        """The topic as the plan made it, with `config` on top, and what the scenario expects."""
        plan = {
            "version": 2,
            "topics": [
                {
                    "name": TOPIC,
                    "partitions": 1,
                    "replication": replication,
                    "min_isr": min_isr,
                    "config": config or {},
                }
            ],
            "expectations": [{"guarantee": name, "status": status} for name, status in (expect or {}).items()],
        }
        (self.directory / "plan.json").write_text(json.dumps(plan))

    def spec(self, **spec: object) -> None:
        """The cluster that it ran on."""
        (self.directory / "run.json").write_text(json.dumps({"spec": spec}))

    def watched(
        self, *leader_epochs: int, partition: int = 0, leader: int | None = None, isr: tuple[int, ...] = (1, 2, 3)
    ) -> None:
        """A broker is asked for the leader now and then, and tells these epochs, each with a leader of its own if none
        is given; -1 is no leader.
        """
        self.recorder.write(
            "observations",
            [
                ObservationLine(
                    asked_ns=self.tick(),
                    answered_ns=self.tick(),
                    source="metadata",
                    node=1,
                    topic=TOPIC,
                    topic_id=TOPIC_ID,
                    partition=partition,
                    leader=leader_epoch % 3 + 1 if leader is None else leader,
                    leader_epoch=leader_epoch,
                    isr=list(isr),
                )
                for leader_epoch in leader_epochs
            ],
        )

    def fault(
        self,
        start_ns: int,
        end_ns: int | None,
        *,
        proven: bool = True,
        step: int = 1,
        broker: str = "broker-2",
        **harm: list[str],
    ) -> None:
        """The leader is killed, and comes back if there is an end; `harm` is what else its proof says."""
        proof = {"leader_after": 1, CRASHED: [broker]} | harm
        for phase, time_ns in (("inject", start_ns), ("healed", end_ns)):
            if time_ns is not None:
                line = FaultLine(
                    time_ns=time_ns,
                    step=step,
                    fault="kill",
                    target_asked="leader of orders-0",
                    target_resolved=broker,
                    phase=phase,
                    proof=json.dumps(proof) if proven else None,
                )
                self.recorder.write("faults", [line])

    def tick(self) -> int:
        self._now_ns += 10
        return self._now_ns

    def seal(self) -> None:
        self.recorder.close()
        seal(self.directory)

    def crash(self) -> None:
        """The recorder dies: the history stays unsealed."""
        self.recorder.close()

    def _done(self, process: int, kind: str) -> int:
        op = self.recorder.next_op()
        line = OperationLine(
            op=op, process=process, kind=kind, invoke_ns=self.tick(), return_ns=self.tick(), outcome=Outcome.OK
        )
        self.recorder.write("operations", [line])
        return op
