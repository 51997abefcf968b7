"""A run directory that a correct cluster could have left behind, or one with a bug, from a seed."""

from __future__ import annotations

import multiprocessing
import shlex
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from lockstep.errors import UsageError
from lockstep.history.schema import DIRECTORY, HISTORY_VERSION, META, METADATA, SEALED, History, Topic
from lockstep.host.disk import explained, replace_file, sync_directory
from lockstep.plan.plan import Heal, Hold, Inject, Plan, Read, TopicPlan, Write, write_plan
from lockstep.plan.targets import FollowerOf, LeaderOf
from lockstep.rundir import RUN, Phase, RunInfo
from lockstep.simulation.bugs import planting_in_rows, require_bug
from lockstep.simulation.parquet import PartWriter, join
from lockstep.simulation.partition import part_path, write_partition
from lockstep.simulation.planter import Planted
from lockstep.simulation.skeleton import TOPIC, TOPIC_ID, Settings, Skeleton, draw
from lockstep.simulation.timeline import BROKERS, KAFKA, MIN_ISR, MODE, MS
from lockstep.spec.cluster import ClusterSpec, Mode
from lockstep.version import __version__

PLANTED = "planted.json"
SCENARIO = "simulate"
_PARTS = ".parts"
_CLIENT = "simulated"


def simulate(settings: Settings, directory: Path, *, workers: int = 1) -> Planted | None:
    """Write the run, and tell of the bug that is in it; if that fails, nothing is left behind."""
    if directory.exists() and any(directory.iterdir()):
        raise UsageError(f"{directory} is not empty: give another directory with --out")
    require_bug(settings)
    skeleton = draw(settings)
    try:
        return _write(skeleton, directory, workers)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise


def _write(skeleton: Skeleton, directory: Path, workers: int) -> Planted | None:
    settings = skeleton.settings
    history, parts = directory / DIRECTORY, directory / _PARTS
    with explained(directory):
        history.mkdir(parents=True)
        parts.mkdir()
    planted = [*_partitions(skeleton, parts, workers), _others(skeleton, parts)]
    for name in SEALED:
        numbered = [part_path(parts, name, number) for number in range(settings.partitions + 1)]
        join(history / f"{name}.parquet", [path for path in numbered if path.exists()])
    shutil.rmtree(parts)
    with explained(history):
        sync_directory(history)
    _describe(skeleton, directory)
    found = next((one for one in planted if one is not None), None)
    if found is not None:
        replace_file(directory / PLANTED, _pretty(found))
    topics = [Topic(name=TOPIC, id=TOPIC_ID)]
    meta = History(version=HISTORY_VERSION, run=settings.run, sealed=True, topics=topics)
    replace_file(history / META, msgspec.json.encode(meta))
    return found


def _partitions(skeleton: Skeleton, parts: Path, workers: int) -> Iterator[Planted | None]:
    """Each partition is one job; its rows do not depend on the process that writes them."""
    numbers = range(skeleton.settings.partitions)
    if workers == 1:
        yield from (write_partition(skeleton, number, parts) for number in numbers)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=workers, mp_context=context) as pool:
        jobs = [pool.submit(_job, skeleton.settings, number, parts) for number in numbers]
        yield from (job.result() for job in jobs)


_drawn: dict[Settings, Skeleton] = {}
"""In a worker: drawing it again is cheaper than sending it, but not for every partition."""


def _job(settings: Settings, number: int, parts: Path) -> Planted | None:
    if settings not in _drawn:
        _drawn[settings] = draw(settings)
    return write_partition(_drawn[settings], number, parts)


def _others(skeleton: Skeleton, parts: Path) -> Planted | None:
    """Rows that belong to no partition, as the last part of each table, with the bug if it is to be planted there."""
    rows = {
        "processes": _processes(skeleton),
        **_operations(skeleton),
        "observations": _metadata(skeleton),
        "faults": _faults(skeleton),
    }
    planting = planting_in_rows(skeleton)
    if planting is not None and planting.bug.in_rows is not None:
        planting.bug.in_rows(planting, rows)
    for name, content in rows.items():
        writer = PartWriter(part_path(parts, name, skeleton.settings.partitions), SEALED[name])
        named = [{"run": skeleton.settings.run} | row for row in content]
        writer.write(pa.Table.from_pylist(named, schema=SEALED[name]))
        writer.close()
    return planting.finished() if planting is not None else None


def _operations(skeleton: Skeleton) -> dict[str, list[dict[str, Any]]]:
    """Operations, and the partitions that a group's members got and lost by them."""
    last = skeleton.settings.partitions
    operations = []
    moved: dict[str, list[dict[str, Any]]] = {"assign": [], "revoke": []}
    for number, row in enumerate(skeleton.operations):
        operation = row._asdict() | {"op": number * (last + 1) + last}
        partitions = operation.pop("partitions")
        operations.append(operation)
        repeated = {name: operation[name] for name in ("op", "process", "invoke_ns", "return_ns", "outcome")}
        if row.kind in moved:
            moved[row.kind] += [
                {"position": position, "topic": 0, "partition": partition} | repeated
                for position, partition in enumerate(partitions)
            ]
    return {"operations": operations, "records-assigned": moved["assign"], "records-revoked": moved["revoke"]}


def _processes(skeleton: Skeleton) -> list[dict[str, Any]]:
    return [row._asdict() | {"client": _CLIENT, "version": __version__} for row in skeleton.processes]


def _metadata(skeleton: Skeleton) -> list[dict[str, Any]]:
    """Metadata responses of two brokers about every new leader or ISR, a moment later and not at the same time."""
    rows = [
        {
            "asked_ns": reign.start_ns + delay_ns,
            "answered_ns": reign.start_ns + delay_ns + MS,
            "source": METADATA,
            "node": node,
            "topic": TOPIC,
            "topic_id": TOPIC_ID,
            "partition": plan.partition,
            "leader": reign.leader,
            "leader_epoch": reign.leader_epoch,
            "partition_epoch": reign.partition_epoch,
            "isr": list(reign.isr),
            "elr": list(reign.elr),
        }
        for plan in skeleton.partitions
        for reign in plan.timeline.reigns
        for node, delay_ns in zip(reign.isr, (3 * MS, 7 * MS), strict=False)
    ]
    return sorted(rows, key=lambda row: (row["asked_ns"], row["partition"], row["node"]))


def _faults(skeleton: Skeleton) -> list[dict[str, Any]]:
    return [
        {
            "time_ns": event.time_ns,
            "step": event.step,
            "fault": event.fault,
            "target_asked": f"{event.asked[0]} of {TOPIC}-{event.asked[1]}",
            "target_resolved": event.resolved,
            "phase": event.phase,
            "proof": None if event.proof is None else msgspec.json.encode(event.proof, order="sorted").decode(),
        }
        for event in skeleton.faults
    ]


def _describe(skeleton: Skeleton, directory: Path) -> None:
    """`run.json` and `plan.json`: nothing in them is of this machine or of now."""
    settings = skeleton.settings
    spec = ClusterSpec(kafka=KAFKA, mode=Mode(MODE))
    command = ["lockstep", "simulate", "--seed", str(settings.seed), "--ops", str(settings.ops)]
    command += ["--partitions", str(settings.partitions), *(["--bug", settings.bug] if settings.bug else [])]
    info = RunInfo(
        run=settings.run,
        scenario=SCENARIO,
        seed=settings.seed,
        lockstep=__version__,
        spec=spec,
        backend=_CLIENT,
        command=shlex.join(command),
        environment={},
        clock={"monotonic_ns": 0, "utc": "1970-01-01T00:00:00+00:00"},
        nodes=[{"name": node.name, "id": node.id, "role": node.role} for node in spec.nodes],
        phases=[
            Phase(name="load", start_ns=skeleton.start_ns, end_ns=skeleton.end_ns),
            Phase(name="final read", start_ns=skeleton.drained_ns, end_ns=_finished_ns(skeleton)),
        ],
    )
    replace_file(directory / RUN, _pretty(info))
    write_plan(_plan(skeleton), directory)


def _finished_ns(skeleton: Skeleton) -> int:
    last = skeleton.partitions[-1]
    return last.final_ns + (last.final_polls + 1) * skeleton.final_poll_ns


def _plan(skeleton: Skeleton) -> Plan:
    settings = skeleton.settings
    steps: list[Hold | Inject | Heal] = []
    now_ns = skeleton.start_ns
    injected: dict[int, int] = {}
    for event in skeleton.faults:
        steps.append(Hold(step=len(steps), seconds=round((event.time_ns - now_ns) / 1e9, 3)))
        now_ns = event.time_ns
        if event.phase == "inject":
            role = LeaderOf if event.asked[0] == "leader" else FollowerOf
            injected[event.step] = len(steps)
            target = role(topic=TOPIC, partition=event.asked[1])
            steps.append(Inject(step=len(steps), fault=event.fault, target=target))
        else:
            steps.append(Heal(step=len(steps), of=injected[event.step]))
    rate = settings.ops * 1_000_000_000 // (skeleton.end_ns - skeleton.start_ns) // len(skeleton.writers)
    return Plan(
        scenario=SCENARIO,
        seed=settings.seed,
        topics=(TopicPlan(name=TOPIC, partitions=settings.partitions, replication=len(BROKERS), min_isr=MIN_ISR),),
        workloads=(
            Write(
                topic=TOPIC, clients=len(skeleton.writers) - 1, acks=-1, idempotent=True, in_flight=5, rate_per_s=rate
            ),
            Write(topic=TOPIC, clients=1, acks=1, idempotent=False, in_flight=5, rate_per_s=rate),
            Read(topic=TOPIC, clients=2),
        ),
        steps=tuple(steps),
    )


def _pretty(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
