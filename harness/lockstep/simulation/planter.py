"""Plants one bug: picks a place for it in the finished rows of a simulated history, and records what was changed.

A bug draws from a random stream of its own, so a run with a bug differs from the same run without it in that bug alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from lockstep.errors import UsageError
from lockstep.simulation.batches import Fate, calm_in
from lockstep.simulation.log import Filled, LogFiller, Sends
from lockstep.simulation.readers import Commit, Polls, View, ranks
from lockstep.simulation.skeleton import TOPIC, PartitionPlan, Skeleton
from lockstep.simulation.timeline import Ints

Mask: TypeAlias = npt.NDArray[np.bool_]

EVERY_VIEW = frozenset(View)


class Planted(msgspec.Struct, kw_only=True):
    """`planted.json`: what was planted, and where."""

    bug: str
    guarantee: str
    summary: str
    """The bug in a sentence."""
    topic: str = TOPIC
    partition: int
    offset: int | None = None
    value: int | None = None
    time_ns: int
    """When the operation was invoked, or the observation asked for, that is wrong."""
    operations: list[int] = []
    """Those whose rows differ from the run without the bug, or would be needed to see it."""
    text: str


@dataclass(slots=True, kw_only=True)
class Scene:
    """The rows of a slice into which a bug may be planted."""

    filled: Filled
    filler: LogFiller
    polls: Sequence[Polls] = ()
    commits: Sequence[Commit] = ()
    probes: Sequence[dict[str, Any]] = ()

    @property
    def sends(self) -> Sends:
        return self.filled.sends


@dataclass(slots=True, kw_only=True)
class Planting:
    """One bug in one partition, until it is planted and after."""

    bug: Bug
    skeleton: Skeleton
    plan: PartitionPlan
    chance: random.Random
    since_ns: int
    """Not before there is something to compare it with."""
    planted: Planted | None = None
    hidden: list[tuple[int, frozenset[View]]] = field(default_factory=list)
    """Offsets that are hidden from the consumers of these views."""
    shown: list[tuple[int, View, int]] = field(default_factory=list)
    """Offsets at which a view is given another value."""
    values: set[int] = field(default_factory=set)
    """The values whose sends show the bug."""
    offsets: dict[int, frozenset[View]] = field(default_factory=dict)
    """The offsets whose polls show the bug, with the views concerned."""
    marked: list[tuple[Polls, int]] = field(default_factory=list)
    """Polls that show it, by their rows."""
    commit: Commit | None = None
    operations: set[int] = field(default_factory=set)
    scene: Scene = field(init=False)

    @classmethod
    def begin(cls, bug: Bug, skeleton: Skeleton, plan: PartitionPlan) -> Planting:
        settings = skeleton.settings
        chance = random.Random(f"{settings.seed}-{settings.bug}")  # noqa: S311
        length_ns = skeleton.end_ns - skeleton.start_ns
        since_ns = skeleton.start_ns + int(length_ns * chance.uniform(0.2, 0.4))
        return cls(bug=bug, skeleton=skeleton, plan=plan, chance=chance, since_ns=since_ns)

    def calm(self, time_ns: Ints) -> Mask:
        """Late enough, and while nothing else is wrong."""
        return calm_in(self.plan, time_ns) & (time_ns >= self.since_ns)

    def pick(self, candidates: Mask) -> int | None:
        rows = np.flatnonzero(candidates)
        return int(rows[self.chance.randrange(len(rows))]) if len(rows) else None

    def strong(self, sends: Sends, *fates: Fate) -> Mask:
        """Sends of plain idempotent writers with acks=all, while it is calm."""
        plain = (sends.part < 0) & np.isin(sends.process, self.skeleton.writers[:-1])
        return plain & np.isin(sends.fate, fates) & self.calm(sends.invoke_ns)

    def offset_of(self, scene: Scene, row: int) -> int:
        """Where a send is in the log, whatever its client was told."""
        return int(np.flatnonzero(scene.filled.log.value == scene.sends.value[row])[0]) + scene.filled.log.base

    def replace(self, scene: Scene, offset: int, views: frozenset[View] = EVERY_VIEW, **columns: int) -> None:
        """Change the record at an offset; polls of these views show it."""
        for name, value in columns.items():
            getattr(scene.filled.log, name)[offset - scene.filled.log.base] = value
        self.offsets[offset] = views

    def hide(self, offset: int, *views: View) -> None:
        self.hidden.append((offset, frozenset(views)))
        self.offsets[offset] = frozenset(views)

    def place(self, *, offset: int | None = None, value: int | None = None, time_ns: int, text: str) -> None:
        """Record that the bug is planted here."""
        where = f"{TOPIC}-{self.plan.partition}" + ("" if offset is None else f" offset {offset}")
        self.planted = Planted(
            bug=self.bug.name,
            guarantee=self.bug.guarantee,
            summary=self.bug.summary,
            partition=self.plan.partition,
            offset=offset,
            value=value,
            time_ns=time_ns,
            text=f"{where}: {text}",
        )

    def place_send(self, scene: Scene, row: int, offset: int, text: str) -> None:
        """Record that the bug is planted in this send."""
        value = int(scene.sends.value[row])
        self.values.add(value)
        self.place(offset=offset, value=value, time_ns=int(scene.sends.invoke_ns[row]), text=text)

    def place_read(self, polls: Polls, row: int, text: str, *, poll: int | None = None) -> None:
        """Record that the bug is planted in this record of a poll, or in its copy in a later poll."""
        own = int(polls.poll[row])
        at = own if poll is None else poll
        self.marked += [(polls, own), (polls, at)]
        text, time_ns = f"process {polls.process} {text}", int(polls.invoke_ns[at])
        self.place(offset=int(polls.offset[row]), value=int(polls.value[row]), time_ns=time_ns, text=text)

    def in_log(self, filled: Filled, filler: LogFiller) -> None:
        self.scene = Scene(filled=filled, filler=filler)
        if self.planted is None and self.bug.in_log is not None:
            self.bug.in_log(self, self.scene)

    def in_reads(self, polls: Sequence[Polls], commits: Sequence[Commit]) -> None:
        self.scene.polls, self.scene.commits = polls, commits
        if self.planted is None and self.bug.in_reads is not None:
            self.bug.in_reads(self, self.scene)
        for one in polls:
            self._apply(one)

    def in_probes(self, probes: list[dict[str, Any]]) -> None:
        self.scene.probes = probes
        if self.planted is None and self.bug.in_probes is not None:
            self.bug.in_probes(self, self.scene)

    def _apply(self, polls: Polls) -> None:
        """Hide and show what is to be, in every poll from now on."""
        for offset, views in self.hidden:
            if polls.view in views:
                drop_rows(polls, polls.offset != offset)
        for offset, view, value in self.shown:
            if polls.view is view:
                polls.value = np.where(polls.offset == offset, value, polls.value)

    def numbered(
        self,
        sends: Sends,
        of_sends: Ints,
        polls: Sequence[Polls],
        of_polls: Sequence[Ints],
        commits: Sequence[Commit],
        of_commits: Ints,
    ) -> None:
        """Operations have their numbers now: note those that show the bug."""
        if self.values:
            rows = np.isin(sends.value, np.array(sorted(self.values)))
            self.operations.update(int(op) for op in of_sends[rows])
        for one, ops in zip(polls, of_polls, strict=True):
            self._note(one, ops)
        self.operations.update(int(op) for one, op in zip(commits, of_commits, strict=True) if one is self.commit)

    def _note(self, polls: Polls, ops: Ints) -> None:
        for offset, views in self.offsets.items():
            if polls.view in views and len(polls.end) and polls.start <= offset < int(polls.end[-1]):
                self.operations.add(int(ops[int(np.searchsorted(polls.end, offset, side="right"))]))
        self.operations.update(int(ops[row]) for marked, row in self.marked if marked is polls)

    def finished(self) -> Planted:
        if self.planted is None:
            raise UsageError(f"there is no place for {self.bug.name} in this run: give another --seed, or more --ops")
        self.planted.operations = sorted(self.operations)
        return self.planted


def drop_rows(polls: Polls, kept: Mask) -> None:
    """Without some records; the others move up."""
    if kept.all():
        return
    for name in ("poll", "offset", "value", "epoch", "timestamp_ms"):
        setattr(polls, name, getattr(polls, name)[kept])
    polls.position = ranks(polls.poll)


@dataclass(frozen=True, slots=True)
class Bug:
    """One kind of violation, and what plants it where there is a place for it; if there is none, in a later slice."""

    name: str
    summary: str
    guarantee: str
    _: KW_ONLY
    in_log: Callable[[Planting, Scene], None] | None = None
    in_reads: Callable[[Planting, Scene], None] | None = None
    in_probes: Callable[[Planting, Scene], None] | None = None
    in_rows: Callable[[Planting, dict[str, list[dict[str, Any]]]], None] | None = None
    """In the rows that belong to no partition."""
    where: Callable[[Skeleton, PartitionPlan], bool] = lambda *_: True
    """Which partitions it can be planted in."""
