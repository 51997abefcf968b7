"""How fast the model is searched, against the plain way of doing it: tuples, a set, and every rule asked each time."""

from __future__ import annotations

import resource
import time

import msgspec

from lockstep.exploration import explore
from lockstep.progress import Progress
from lockstep_model.state_machine import Machine

PLAIN_STATES = 20_000
"""How far the plain search goes: its speed does not change after that."""


class ExploreBench(msgspec.Struct, frozen=True, kw_only=True):
    """What `lockstep bench explore --json` prints."""

    states: int
    seconds: float
    cpu_seconds: float
    states_per_s: int
    peak_memory_mb: int
    """Of this process and of the largest of its workers, times their number."""
    workers: int
    plain_states_per_s: int
    """For each second of processor time, as other programs may be using the machine."""
    ratio: float
    """Of states for each second of processor time, ours to plain."""


def bench_explore(machine: Machine, *, workers: int, symmetric: bool, progress: Progress) -> ExploreBench:
    """Search everything, then the beginning once more the plain way."""
    with progress.action(f"searching with {workers} {'worker' if workers == 1 else 'workers'}"):
        began, began_cpu = time.perf_counter(), _cpu_seconds()
        states = explore(machine, workers=workers, symmetric=symmetric).states
        seconds, cpu_seconds = time.perf_counter() - began, _cpu_seconds() - began_cpu
    memory_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if workers > 1:
        memory_kb += workers * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    with progress.action("searching the plain way"):
        plain = _plain_per_s(machine)
    return ExploreBench(
        states=states,
        seconds=round(seconds, 2),
        cpu_seconds=round(cpu_seconds, 2),
        states_per_s=round(states / seconds),
        peak_memory_mb=memory_kb // 1024,
        workers=workers,
        plain_states_per_s=round(plain),
        ratio=round(states / cpu_seconds / plain, 2),
    )


def _cpu_seconds() -> float:
    """Of this process and of its workers that have ended."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def _plain_per_s(machine: Machine) -> float:
    began = _cpu_seconds()
    seen = frontier = {machine.initial}
    while frontier and len(seen) < PLAIN_STATES:
        frontier = {after for state in frontier for _, after in machine.enabled(state)} - seen
        seen = seen | frontier
    return len(seen) / (_cpu_seconds() - began)
