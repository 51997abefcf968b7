"""The search of `reference_model.search`, spread over processes.

Every state belongs to one worker, which keeps it and expands it. They go level by level: each expands its states, all
agree on the numbers of values that came up (packed states mean the same only if values have the same numbers
everywhere), and what was found goes to its owners. The parent passes messages on and never looks into them.
"""

from __future__ import annotations

import gc
import multiprocessing
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from harness.errors import EnvironmentError_
from reference_model.machine import Machine, Part
from reference_model.search import Expansion, Exploration, Progress, Steps, TooManyValues


def explore_together(
    make: Callable[[], Machine],
    *,
    workers: int,
    depth: int | None = None,
    symmetric: bool = False,
    invariants: Iterable[str] | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Exploration:
    """Search what the machine can reach with so many processes; `make` is called in each of them."""
    watched = None if invariants is None else tuple(invariants)
    with ExitStack() as stack:
        everyone = [
            stack.enter_context(_worker(make, number, workers, symmetric, watched)) for number in range(workers)
        ]
        return _Search(make, everyone, symmetric, watched).run(depth, progress)


@contextmanager
def _worker(
    make: Callable[[], Machine], number: int, workers: int, symmetric: bool, watched: tuple[str, ...] | None
) -> Iterator[Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    arguments = (theirs, make, number, workers, symmetric, watched)
    process = context.Process(target=work, args=arguments, daemon=True, name=f"search-{number}")
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        ours.close()  # which ends the worker
        process.join()


class _Search:
    """The parent: what all workers together have found."""

    def __init__(
        self,
        make: Callable[[], Machine],
        workers: list[Connection],
        symmetric: bool,
        watched: tuple[str, ...] | None,
    ) -> None:
        self._workers = workers
        self._expansion = Expansion(make(), symmetric=symmetric, invariants=watched)
        self._start = self._expansion.pack(self._expansion.machine.initial)
        self._broken: dict[str, tuple[int, Steps]] = {}
        self._states = 0

    def run(self, depth: int | None, progress: Callable[[Progress], None]) -> Exploration:
        level, new = 0, self._take(0)
        while new and (depth is None or level < depth):
            self._agree()
            self._exchange()
            new = self._take(level + 1)
            if new:
                level += 1
                progress(Progress(depth=level, states=self._states, frontier=new))
        generated = sum(self._ask(worker, "generated") for worker in self._workers)
        return Exploration(
            states=self._states,
            generated=generated,
            diameter=level,
            violations={
                name: self._expansion.violation(at, [*self._path_to(steps[0]), *steps[1:]])
                for name, (at, steps) in self._broken.items()
            },
            complete=not new,
        )

    def _agree(self) -> None:
        """Number the values that came up in this level, the same way for all."""
        known = len(self._expansion.packing.values)
        for worker in self._workers:
            worker.send("expand")
        for worker in self._workers:
            for part in _received(worker):
                self._expansion.packing.number(part)
        values = pickle.dumps(self._expansion.packing.values[known:])
        with _alive():
            for worker in self._workers:
                worker.send_bytes(values)

    def _exchange(self) -> None:
        """Hand each worker what the others found of its states."""
        with _alive():
            boxes = [[worker.recv_bytes() for _ in self._workers] for worker in self._workers]
            for number, worker in enumerate(self._workers):
                for box in boxes:
                    worker.send_bytes(box[number])

    def _take(self, level: int) -> int:
        """How many new states there are, all together; notes what they break."""
        total = 0
        for worker in self._workers:
            new, broken = _received(worker)
            total += new
            for name, steps in broken.items():
                self._broken.setdefault(name, (level, steps))
        self._states += total
        return total

    def _path_to(self, state: int) -> list[int]:
        path = [state]
        while path[-1] != self._start:
            path.append(self._ask(self._workers[owner(path[-1], len(self._workers))], path[-1]))
        return path[::-1]

    @staticmethod
    def _ask(worker: Connection, what: object) -> Any:
        worker.send(what)
        return _received(worker)


def _received(worker: Connection) -> Any:
    with _alive():
        answer = worker.recv()
    if isinstance(answer, TooManyValues):
        raise answer
    return answer


@contextmanager
def _alive() -> Iterator[None]:
    """Say what it most likely means that a worker is gone."""
    try:
        yield
    except (EOFError, ConnectionError) as error:
        raise EnvironmentError_(
            "a searching process died, most likely for want of memory: use smaller bounds or fewer workers"
        ) from error


@contextmanager
def without_collection() -> Iterator[None]:
    """Millions of states hold no cycles, and looking for some takes a tenth of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def owner(state: int, workers: int) -> int:
    return hash(state) % workers


@dataclass(slots=True)
class _Owned:
    """The states of one worker."""

    expansion: Expansion
    workers: int
    parents: dict[int, int] = field(default_factory=dict)
    frontier: list[int] = field(default_factory=list)

    def take(self, found: Iterable[tuple[int, int]]) -> tuple[int, dict[str, Steps]]:
        """Keep what is new of this, and look at it: how many there are, and what they break."""
        self.frontier = []
        for state, parent in found:
            if state not in self.parents:
                self.parents[state] = parent
                self.frontier.append(state)
        return len(self.frontier), self.expansion.missteps | self.expansion.violations(self.frontier)

    def boxes(self, found: dict[int, int]) -> list[list[tuple[int, int]]]:
        """What was found, by the worker that it belongs to."""
        boxes: list[list[tuple[int, int]]] = [[] for _ in range(self.workers)]
        for state, parent in found.items():
            boxes[owner(state, self.workers)].append((state, parent))
        return boxes


def work(
    parent: Connection,
    make: Callable[[], Machine],
    number: int,
    workers: int,
    symmetric: bool,
    watched: tuple[str, ...] | None,
) -> None:
    """One worker, until the parent closes the connection."""
    gc.disable()
    owned = _Owned(Expansion(make(), symmetric=symmetric, invariants=watched), workers)
    start = owned.expansion.pack(owned.expansion.machine.initial)
    parent.send(owned.take([(start, start)] if owner(start, workers) == number else []))
    while True:
        try:
            asked = parent.recv()
        except EOFError:
            return
        if asked == "expand":
            _level(owned, parent)
        elif asked == "generated":
            parent.send(owned.expansion.generated)
        else:
            parent.send(owned.parents[asked])


def _level(owned: _Owned, parent: Connection) -> None:
    values = owned.expansion.packing.values
    known = len(values)
    try:
        found = owned.expansion.expand(owned.frontier, owned.parents)
    except TooManyValues as error:
        parent.send(error)
        return
    new: list[Part] = values[known:]
    parent.send(new)
    found = owned.expansion.settle(known, parent.recv(), found)
    for box in owned.boxes(found):
        parent.send(box)
    parent.send(owned.take(entry for _ in range(owned.workers) for entry in parent.recv()))
