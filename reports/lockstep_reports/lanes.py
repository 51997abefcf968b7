"""Leader lanes: the leader of each partition, its leader epoch, and the replicas in the ISR."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from lockstep_reports import words
from lockstep_reports.content import Lane
from lockstep_reports.scales import Linear
from lockstep_reports.svg import Node, clipped, text_width

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
    svg.label(left - 8, y + BAR - 4, clipped(lane.name, left - 12, size=12), "strong", anchor="end")
    entries = sorted(lane.lane, key=lambda entry: entry.t)
    replicas = _replicas(lane)
    bars: list[tuple[float, float]] = []  # the room that each leader's bar has left for a note
    for start, end, (leader, epoch) in _stretches([(it.t, (it.leader, it.leader_epoch)) for it in entries], x.high):
        led = leader is not None and leader in palette.ids
        tail = "" if epoch is None else f" · epoch {epoch}"
        who = f"broker {leader}" if led else "no leader"
        colour = palette.colour(leader) if led and leader is not None else "none"
        title = f"{lane.name}: {who}{tail}, {_during(start, end)}"
        svg.rect(x(start), y, x(end) - x(start) - 1, BAR, f"leader {colour}", title=title, rx=2)
        texts = (f"{who}{tail}", who, str(leader)) if led else (who,)
        bars.append((_fit(svg, texts, x(start), x(end), y, "on-bar" if led else ""), x(end)))
    for start, end, isr in _stretches([(entry.t, tuple(entry.isr)) for entry in entries], x.high):
        for row, broker in enumerate(replicas):
            top = y + BAR + 1 + (REPLICA + 1) * row
            if broker in isr:
                svg.rect(x(start), top, x(end) - x(start), REPLICA, f"isr {palette.colour(broker)}")
            else:
                title = f"{lane.name}: {broker} out of sync, {_during(start, end)}"
                svg.rect(x(start), top, x(end) - x(start), REPLICA, "out-of-sync", title=title)
        if len(isr) < len(replicas):
            rooms = [(max(x(start), left), min(x(end), right)) for left, right in bars]
            left, right = max(rooms, key=lambda room: room[1] - room[0])
            _fit(svg, (f"ISR {words.plain(list(isr))}",), left, right, y, "on-bar isr-note")


def _fit(svg: Node, texts: Sequence[str], left: float, right: float, y: float, class_: str) -> float:
    """Write the longest of `texts` that fits, and return where the room after it begins."""
    for text in texts:
        end = left + 5 + text_width(text, size=12)
        if end + 3 <= right:
            svg.label(left + 5, y + BAR - 4, text, class_)
            return end + 8
    return right


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
