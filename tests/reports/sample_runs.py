"""Run directories as a real run leaves them, small enough to read and lifelike enough to look at."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

from lockstep.history.schema import value_id

SECOND = 1_000_000_000
ORIGIN_NS = 3_600 * SECOND
LOAD_S = 16.0
RUN_S = 21.0
KILL_S, HEAL_S = 5.1, 10.4

HOSTILE = "<script>alert(1)</script>"
BREAKOUT = (
    "</script></style></title><img src=x onerror=alert(2)>\"'`]]>--!> {{7*7}} \u202egnp\u0000 | **x** [a](https://evil)"
)

GUARANTEES = (
    "no-lost-acks",
    "one-value-per-offset",
    "no-duplicates",
    "no-phantoms",
    "real-time-order",
    "monotonic-reads",
)

Document = dict[str, Any]


def at(seconds: float) -> int:
    """A monotonic time, `seconds` after the load began."""
    return ORIGIN_NS + round(seconds * SECOND)


def operation(op: int, process: int, kind: str, began_s: float, took_ms: float | None, **fields: Any) -> Document:
    """One operation of an anomaly; without a duration it was never answered."""
    returned = None if took_ms is None else at(began_s) + round(took_ms * 1e6)
    outcome = "unknown" if took_ms is None else "ok"
    base = {"op": op, "process": process, "kind": kind, "invoke_ns": at(began_s), "return_ns": returned}
    return {**base, "outcome": outcome, **fields}


def pass_run(directory: Path) -> Path:
    """The leader of orders-0 is killed at 5 s: throughput dips, leadership moves, everything holds."""
    guarantees = [_held(name) for name in GUARANTEES]
    return _write(directory, verdict=_verdict("pass", guarantees, []))


def violation_run(directory: Path) -> Path:
    """Four acknowledged writes are gone, and two acknowledged appends stand in the wrong order."""
    guarantees = [_held(name) for name in GUARANTEES]
    guarantees[0] |= {
        "status": "violated",
        "count": 4,
        "reason": "4 acknowledged writes to orders-0 are not in the log that was read to its end",
    }
    guarantees[4] |= {
        "status": "violated",
        "count": 1,
        "reason": "1 write stands before another one that had been acknowledged before it began",
    }
    guarantees[2] |= {
        "status": "permitted",
        "count": 1,
        "reason": "writer 3 is not idempotent, so a retry may append twice",
    }
    guarantees[5] |= {"status": "not-applicable", "reason": "no reader followed the log while it was written"}
    fault = "kill of broker-2 (leader of orders-0)"
    lost = [
        {
            "guarantee": "no-lost-acks",
            "name": "lost-ack",
            "topic": "orders",
            "partition": 0,
            "offset": 4117 + index,
            "value": value_id(1, 2031 + index),
            "fault": fault,
            "text": f"The write of record {2031 + index} was acknowledged at offset {4117 + index} of orders-0, and "
            "the final read to log end 9211 did not find it.",
            "operations": [
                operation(8120 + index, 1, "send", 5.08 + index / 1000, 3.4, offset=4117 + index),
                operation(21877, 9, "poll", 18.2, 41.0),
            ],
        }
        for index in range(4)
    ]
    order = {
        "guarantee": "real-time-order",
        "name": "order-inversion",
        "topic": "orders",
        "partition": 0,
        "offset": 4121,
        "value": value_id(2, 1987),
        "fault": fault,
        "text": "Send #8131 began after send #8126 was acknowledged at offset 4123, and got offset 4121.",
        "operations": [
            operation(8126, 1, "send", 5.087, 2.9, offset=4123),
            operation(8131, 2, "send", 5.0931, 1890.0, offset=4121),
            operation(8140, 3, "send", 5.094, None, error="REQUEST_TIMED_OUT"),
        ],
    }
    twice = {
        "guarantee": "no-duplicates",
        "name": "duplicate",
        "topic": "orders",
        "partition": 2,
        "offset": 3901,
        "value": value_id(3, 1444),
        "fault": None,
        "text": "Value 1444 of writer 3 is at offsets 3899 and 3901.",
        "operations": [operation(7990, 3, "send", 4.6, 30004.0, outcome="unknown", error="REQUEST_TIMED_OUT")],
    }
    return _write(directory, verdict=_verdict("violation", guarantees, [*lost, order, twice]))


def undecided_run(directory: Path) -> Path:
    """The final read ended early, so what is missing may only be late; the broker never came back."""
    guarantees = [_held(name) for name in GUARANTEES]
    guarantees[0] |= {
        "status": "undecided",
        "reason": "orders-1 was not read to its end (stopped at 2977 of 3120), so 12 writes may only be late",
    }
    verdict = _verdict("undecided", guarantees, [])
    return _write(directory, verdict=verdict, healed=False)


def hostile_run(directory: Path) -> Path:
    """Markup, script and control characters wherever a client, a broker or a file name could have put them."""
    guarantees = [_held(name) for name in GUARANTEES]
    guarantees[0] |= {"status": "violated", "count": 1, "reason": f"{HOSTILE} {BREAKOUT}"}
    guarantees.append({"name": HOSTILE, "status": "undecided", "reason": BREAKOUT, "count": 0})
    anomaly = {
        "guarantee": "no-lost-acks",
        "name": HOSTILE,
        "topic": HOSTILE,
        "partition": 0,
        "offset": 1,
        "value": f"{BREAKOUT}{HOSTILE}",
        "fault": BREAKOUT,
        "text": f"{HOSTILE} {BREAKOUT} {'x' * 5000}",
        "operations": [operation(1, 1, HOSTILE, 5.0, 2.0, outcome=BREAKOUT, error=HOSTILE)],
    }
    run = _write(directory, verdict=_verdict("violation", guarantees, [anomaly]))
    for name in ("run.json", "plan.json", "series.json", "ledger.jsonl"):
        text = (run / name).read_text()
        for word in ("orders", "broker-2", "load", "kraft", "process", "2.12.0", "stopped"):
            text = text.replace(word, json.dumps(word + HOSTILE + BREAKOUT)[1:-1])
        (run / name).write_text(text)
    return run


def edit(run: Path, name: str, **fields: Any) -> None:
    """Change top-level fields of one of the run's JSON files."""
    document = json.loads((run / name).read_text())
    _dump(run / name, document | fields)


def _held(name: str) -> Document:
    return {"name": name, "status": "held", "reason": "nothing in the history speaks against it", "count": 0}


def _verdict(word: str, guarantees: list[Document], anomalies: list[Document]) -> Document:
    return {
        "verdict": word,
        "guarantees": guarantees,
        "anomalies": anomalies,
        "operations": 21_903,
        "records": 52_310,
        "seconds": 6.42,
        "counts": {"acknowledged": 17_402, "failed": 0, "unknown": 37, "read": 34_871, "partitions": 3},
    }


def _write(directory: Path, *, verdict: Document, healed: bool = True) -> Path:
    directory.mkdir(parents=True)
    command = "lockstep run leader-kill --seed 7"
    phases = [
        ("start", -7.4, -0.2),
        ("load", 0.0, LOAD_S),
        ("heal", LOAD_S, 17.9),
        ("final-read", 17.9, 20.1),
        ("stop", 20.1, RUN_S),
    ]
    run = {
        "run": directory.name,
        "scenario": "leader-kill",
        "seed": 7,
        "lockstep": "0.1.0",
        "spec": {"kafka": "4.3.1", "mode": "kraft", "brokers": 3, "controllers": 1, "overrides": {}},
        "backend": "process",
        "command": command,
        "environment": {"python": "3.11.2", "java": "17.0.15", "os": "Debian 12", "cpus": 2, "librdkafka": "2.12.0"},
        "clock": {"monotonic_ns": at(-7.4), "utc": "2026-11-16T08:00:00.000000Z"},
        "nodes": [{"name": name, "id": index, "role": "broker"} for index, name in enumerate(_NODES)],
        "phases": [{"name": name, "start_ns": at(start), "end_ns": at(end)} for name, start, end in phases],
    }
    _dump(directory / "run.json", run)
    _dump(directory / "plan.json", _plan())
    _dump(directory / "verdict.json", {**verdict, "run": directory.name})
    _dump(directory / "series.json", _series(healed))
    lines = "".join(json.dumps(line) + "\n" for line in _ledger(healed))
    (directory / "ledger.jsonl").write_text(lines)
    return directory


_NODES = ("controller-100", "broker-1", "broker-2", "broker-3")


def _plan() -> Document:
    write = {"kind": "write", "topic": "orders", "clients": 3, "acks": -1, "idempotent": True, "in_flight": 5}
    leader = {"role": "leader", "topic": "orders", "partition": 0}
    return {
        "version": 1,
        "scenario": "leader-kill",
        "seed": 7,
        "topics": [{"name": "orders", "partitions": 3, "replication": 3, "min_isr": 2}],
        "workloads": [write, {"kind": "read", "topic": "orders", "clients": 2}],
        "steps": [
            {"step": 1, "action": "hold", "seconds": 5.0},
            {"step": 2, "action": "inject", "fault": "kill", "target": leader},
            {"step": 3, "action": "hold", "seconds": 5.0},
            {"step": 4, "action": "heal", "of": 2},
            {"step": 5, "action": "hold", "seconds": 5.0},
        ],
    }


def _ledger(healed: bool) -> list[Document]:
    process = {"entry": 1, "time_ns": at(-7.0), "kind": "process", "phase": "effect", "pid": 4000}
    asked = {"fault": "kill", "step": 2, "target_asked": "leader of orders-0"}
    died = {"killed": {"pid": 4711}, "signal": "SIGKILL"}
    moved = {
        **died,
        "state": "stopped",
        "partition": "orders-0",
        "leader_before": 2,
        "leader_epoch_before": 0,
        "leader_after": 3,
        "leader_epoch_after": 1,
        "moved_after_ms": 1840,
    }
    back = {"restarted": {"pid": 4802}, "in_isr_of": ["orders-0", "orders-1", "orders-2"], "back_after_ms": 5310}
    known = {**asked, "target_resolved": "broker-2"}
    fault = [
        {"time_ns": at(5.094), "phase": "intent", **asked},
        {"time_ns": at(KILL_S), "phase": "effect", **known, "detail": died},
        {"time_ns": at(6.95), "phase": "proof", "detail": moved},
    ]
    if healed:
        fault.append({"time_ns": at(HEAL_S), "phase": "healed", "detail": back})
    return [process, *({"entry": 9, "kind": "fault", **line} for line in fault)]


def _series(healed: bool) -> Document:
    noise = random.Random(7)
    throughput, latency = [], []
    for bucket in range(math.ceil(RUN_S / 0.5)):
        t = bucket * 0.5
        loaded = t < LOAD_S
        down = 5.0 <= t < 7.0
        thin = 7.0 <= t < HEAL_S or (not healed and t >= HEAL_S)
        share = 0.0 if down or not loaded else 0.72 if thin else min(1.0, 0.5 + t)
        acknowledged = round(620 * share * noise.uniform(0.92, 1.08))
        read = round(acknowledged * 2 + (900 if t == 7.0 else 0)) if loaded else 4200 if 18 <= t < 20 else 0
        throughput.append({"t": t, "acknowledged": acknowledged, "unknown": 37 if t == 5.0 else 0, "read": read})
        if acknowledged:
            p50 = (3.1 if not thin else 4.4) * noise.uniform(0.85, 1.2) * (7 if t < 0.5 else 1)
            tail = 260.0 if t == 4.5 else 14.0 if thin else 6.0
            slowest = 1910.0 if t == 4.5 else p50 * tail / 2 * noise.uniform(1.0, 1.6)
            latency.append(
                {
                    "t": t,
                    "p50_ms": round(p50, 2),
                    "p95_ms": round(p50 * 2.4, 2),
                    "p99_ms": round(p50 * tail / 2.2, 2),
                    "max_ms": round(max(slowest, p50 * tail / 2.2), 2),
                }
            )
    back = [{"t": HEAL_S + 1.6}] if healed else []
    leaders = []
    for partition, leader in enumerate((2, 3, 1)):
        lane: list[Document] = [{"t": 0.0, "leader": leader, "leader_epoch": 0, "isr": [1, 2, 3]}]
        if leader == 2:
            lane.append({"t": KILL_S, "leader": -1, "leader_epoch": 0, "isr": [1, 2, 3]})
        after = {"leader": 3 if leader == 2 else leader, "leader_epoch": 1 if leader == 2 else 0}
        lane.append({"t": 6.9, **after, "isr": [1, 3]})
        lane.extend({**when, **after, "isr": [1, 2, 3]} for when in back)
        leaders.append({"topic": "orders", "partition": partition, "lane": lane})
    fault = {"fault": "kill", "target": "leader of orders-0", "resolved": "broker-2", "start_t": KILL_S}
    return {
        "origin_ns": ORIGIN_NS,
        "seconds": RUN_S,
        "bucket_s": 0.5,
        "throughput": throughput,
        "latency": latency,
        "leaders": leaders,
        "faults": [{**fault, "end_t": HEAL_S if healed else None, "proof": {"leader_before": 2, "leader_after": 3}}],
        "phases": [
            {"name": "load", "start_t": 0.0, "end_t": LOAD_S},
            {"name": "heal", "start_t": LOAD_S, "end_t": 17.9},
            {"name": "final-read", "start_t": 17.9, "end_t": 20.1},
            {"name": "stop", "start_t": 20.1, "end_t": RUN_S},
        ],
    }


def _dump(path: Path, document: Document) -> None:
    path.write_text(json.dumps(document))
