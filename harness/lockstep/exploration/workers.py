"""The search of `lockstep_model.search`, spread over processes.

One process begins alone, until there is enough to share, and becomes several, which know what it learned. Every state
belongs to one of them, which keeps it and expands it. They go level by level: each expands its states, all agree on the
numbers of values that came up (packed states mean the same only if values have the same numbers everywhere), and what
was found goes to its owners. The parent passes messages on and does not look into them.
"""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from lockstep.errors import EnvironmentError_
from lockstep_model.search import Exploration, Progress, Search, TooManyValues, mask_of
from lockstep_model.state_machine import Machine

ALONE = 1_000
"""For each worker, how many states are at the frontier when it is shared out."""
SPREAD = 200
"""For each worker, into how many groups the states are shared out."""


def explore_together(
    machine: Machine,
    *,
    workers: int,
    depth: int | None = None,
    symmetric: bool = False,
    invariants: Iterable[str] | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Exploration:
    """Search what the machine can reach with so many processes."""
    search = Search(machine, symmetric=symmetric, invariants=invariants)
    with ExitStack() as stack:
        stack.enter_context(without_collection())
        while search.frontier and len(search.frontier) < ALONE * workers and search.depth != depth:
            search.advance()
        search.expansion.await_agreement()
        owner = Owner.of(search, workers)
        connections: list[Connection] = []
        for number in range(workers):
            connections.append(stack.enter_context(_worker(search, owner, number, connections)))
        return _Together(search, owner, connections).run(depth, progress)


@dataclass(frozen=True, slots=True)
class Owner:
    """To whom a state belongs: that is told by some of its parts, so that most steps stay with one worker."""

    workers: int
    mask: int

    @staticmethod
    def of(search: Search, workers: int) -> Owner:
        """By the parts that changed least often in the last steps, and as many as make groups enough."""
        steps = [state ^ parent for state, parent in search.frontier.items()]
        places = [mask_of([place]) for place in range(len(search.expansion.machine.initial))]
        mask = 0
        for place in sorted(places, key=lambda place: sum(1 for step in steps if step & place)):
            mask |= place
            if len({state & mask for state in search.frontier}) >= SPREAD * workers:
                break
        return Owner(workers, mask)

    def __call__(self, state: int) -> int:
        return (state & self.mask) % 1_000_003 % self.workers  # by a prime, on which all bits of the parts tell


@contextmanager
def _worker(search: Search, owner: Owner, number: int, others: list[Connection]) -> Iterator[Connection]:
    """A process that begins where this one is."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    arguments = (search, owner, number, theirs, [*others, ours])
    process = context.Process(target=work, args=arguments, daemon=True, name=f"search-{number}")
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        ours.close()  # which ends the worker
        process.join()


class _Together:
    """The parent: what all workers together have found."""

    def __init__(self, search: Search, owner: Owner, workers: list[Connection]) -> None:
        self._alone = search
        self._owner = owner
        self._workers = workers
        self._packing = search.expansion.packing
        self._broken = search.broken
        self._states = len(search.parents)

    def run(self, depth: int | None, progress: Callable[[Progress], None]) -> Exploration:
        level, new = self._alone.depth, len(self._alone.frontier)
        while new and level != depth:
            self._agree()
            self._exchange()
            new = self._take(level + 1)
            if new:
                level += 1
                progress(Progress(depth=level, states=self._states, frontier=new))
        expansion = self._alone.expansion
        return Exploration(
            states=self._states,
            generated=expansion.generated + sum(self._ask(worker, "generated") for worker in self._workers),
            diameter=level,
            violations={
                name: expansion.violation(at, [*self._path_to(steps[0]), *steps[1:]])
                for name, (at, steps) in self._broken.items()
            },
            complete=not new,
        )

    def _agree(self) -> None:
        """Number the values that came up in this level, the same way for all."""
        known = len(self._packing.values)
        for worker in self._workers:
            worker.send("expand")
        for worker in self._workers:
            for part in _received(worker):
                self._packing.number(part)
        with _alive():
            for worker in self._workers:
                worker.send(self._packing.values[known:])

    def _exchange(self) -> None:
        """Hand each worker what the others found of its states."""
        count = len(self._workers)
        with _alive():
            boxes = [[worker.recv_bytes() for _ in range(count - 1)] for worker in self._workers]
            for number, worker in enumerate(self._workers):
                for other in range(count):
                    if other != number:
                        worker.send_bytes(boxes[other][number - (number > other)])

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
        """Back to where it was searched alone, by asking the owner of each state."""
        path = [state]
        while path[-1] not in self._alone.parents:
            path.append(self._ask(self._workers[self._owner(path[-1])], path[-1]))
        return self._alone.path_to(path[-1]) + path[-2::-1]

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


def work(search: Search, owner: Owner, number: int, parent: Connection, inherited: list[Connection]) -> None:
    """One worker, until the parent closes the connection."""
    for connection in inherited:
        connection.close()
    search.frontier = {state: before for state, before in search.frontier.items() if owner(state) == number}
    search.expansion.generated = 0
    try:
        while True:
            asked = parent.recv()
            if asked == "expand":
                _level(search, owner, number, parent)
            elif asked == "generated":
                parent.send(search.expansion.generated)
            else:
                parent.send(search.parents[asked])
    except TooManyValues as error:
        parent.send(error)
    except EOFError:
        return


def _level(search: Search, owner: Owner, number: int, parent: Connection) -> None:
    expansion = search.expansion
    found = expansion.expand(search.frontier, search.parents)
    parent.send(expansion.provisional)
    boxes: list[dict[int, int]] = [{} for _ in range(owner.workers)]
    for state, before in expansion.agree(parent.recv(), found).items():
        boxes[owner(state)][state] = before
    for box in boxes[:number] + boxes[number + 1 :]:
        parent.send(box)
    mine = boxes[number]
    for _ in range(owner.workers - 1):
        mine |= parent.recv()
    new = {state: before for state, before in mine.items() if state not in search.parents}
    already = set(search.broken)
    search.take(search.depth + 1, new)
    parent.send((len(new), {name: steps for name, (_, steps) in search.broken.items() if name not in already}))
