"""Leader lanes: who led each partition, in which epoch, and which replicas were in sync."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from reports import words
from reports.content import Lane
from reports.scales import Linear
from reports.svg import Node, clipped, text_width

T = TypeVar("T")

LANES_LIMIT = 24
COLOURS = 6

BAR = 15
REPLICA = 3
GAP = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers:
    """One colour class per broker, the same in every lane."""

    ids: tuple[int, ...]

    def colour(self, broker: int) -> str:
        return f"b{self.ids.index(broker) % COLOURS}"


def brokers(lanes: Sequence[Lane]) -> Brokers:
    return Brokers(ids=tuple(sorted({broker for lane in lanes for broker in _replicas(lane)})))


def chosen(lanes: Sequence[Lane]) -> list[Lane]:
    """At most `LANES_LIMIT`, those with the most changes if there are more, in the order of their names."""
    busiest = sorted(lanes, key=lambda lane: -len(lane.lane))[:LANES_LIMIT]
    return sorted(busiest, key=lambda lane: (lane.topic, lane.partition))


def height(lane: Lane) -> float:
    return BAR + 1 + (REPLICA + 1) * len(_replicas(lane)) + GAP


def draw(svg: Node, lane: Lane, palette: Brokers, *, x: Linear, y: float, left: float) -> None:
    """One lane: the leader as a bar, and under it one stripe per replica, filled while it is in the ISR."""
    svg.label(left - 8, y + BAR - 4, clipped(lane.name, left - 8), "strong", anchor="end")
    entries = sorted(lane.lane, key=lambda entry: entry.t)
    for start, end, (leader, epoch) in _stretches([(it.t, (it.leader, it.leader_epoch)) for it in entries], x.high):
        _leader(svg, lane.name, leader, epoch, palette, x=x, times=(start, end), y=y)
    replicas = _replicas(lane)
    for row, broker in enumerate(replicas):
        top = y + BAR + 1 + (REPLICA + 1) * row
        svg.line(x(x.low), top + REPLICA / 2, x(x.high), top + REPLICA / 2, "out-of-sync")
        for start, end, in_sync in _stretches([(entry.t, broker in entry.isr) for entry in entries], x.high):
            if in_sync:
                svg.rect(x(start), top, x(end) - x(start), REPLICA, f"isr {palette.colour(broker)}")
    for start, end, isr in _stretches([(entry.t, tuple(entry.isr)) for entry in entries], x.high):
        if len(isr) < len(replicas):
            missing = words.listing([str(broker) for broker in replicas if broker not in isr])
            title = f"{lane.name}: ISR {words.plain(list(isr))} without {missing}, {_during(start, end)}"
            svg.rect(x(start), y + BAR, x(end) - x(start), height(lane) - BAR - GAP + 2, "shrunk", title=title)


def _leader(
    svg: Node,
    name: str,
    leader: int | None,
    epoch: int | None,
    palette: Brokers,
    *,
    x: Linear,
    times: tuple[float, float],
    y: float,
) -> None:
    left, right = x(times[0]), x(times[1])
    known = leader is not None and leader in palette.ids
    tail = "" if epoch is None else f" · epoch {epoch}"
    who = f"broker {leader}" if known else "no leader"
    colour = palette.colour(leader) if known and leader is not None else "none"
    svg.rect(left, y, right - left - 1, BAR, f"leader {colour}", title=f"{name}: {who}{tail}, {_during(*times)}", rx=2)
    for text in (f"{who}{tail}", who, str(leader) if known else ""):
        if text and text_width(text) + 8 <= right - left:
            svg.label(left + 5, y + BAR - 4, text, "on-bar" if known else "")
            break


def _during(start: float, end: float) -> str:
    return f"{words.seconds(start)} to {words.seconds(end)}"


def _stretches(points: Sequence[tuple[float, T]], end: float) -> list[tuple[float, float, T]]:
    """(from, to, value) for each run of equal values; the last one lasts to `end`."""
    starts = [next(run) for _, run in itertools.groupby(points, key=lambda point: point[1])]
    ends = [*(t for t, _ in starts[1:]), end]
    return [(start, until, value) for (start, value), until in zip(starts, ends, strict=False)]


def _replicas(lane: Lane) -> list[int]:
    """Every broker ever seen in the ISR or leading: what the stripes stand for. Kafka says "no leader" as -1."""
    leaders = {entry.leader for entry in lane.lane if entry.leader is not None and entry.leader >= 0}
    return sorted(leaders.union(*(entry.isr for entry in lane.lane)))
