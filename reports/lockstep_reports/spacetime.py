"""A space-time diagram of a few operations: one line per client, and which operation returned before which began.

Operations that show an anomaly last milliseconds and lie seconds apart, so time is not to scale: every moment at which
something begins or ends gets its own place, in order, with room that grows with the logarithm of the time between.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from lockstep_reports import words
from lockstep_reports.content import Fault, Operation
from lockstep_reports.scales import pack
from lockstep_reports.svg import Node, clipped, figure, text_width

OPERATIONS_LIMIT = 8

WIDTH = 940
LEFT, RIGHT = 92, 22
TOP = 24
BAR = 14
LINE = 14
LABEL_SIZE = 11
TICK_SIZE = 10


@dataclass(frozen=True, slots=True)
class Warped:
    """Time, monotone but not to scale: `moments` are the seconds that matter, `places` where they are drawn."""

    moments: tuple[float, ...]
    places: tuple[float, ...]

    def __call__(self, t: float) -> float:
        if t <= self.moments[0]:
            return self.places[0] if t == self.moments[0] else LEFT
        if t > self.moments[-1]:
            return WIDTH - RIGHT
        return self.places[self.moments.index(t)]


def warp(moments: Sequence[float]) -> Warped:
    """Give every distinct moment a place between the margins."""
    ordered = sorted(set(moments))
    gaps = [1.0 + math.log1p((after - before) * 1e3) / 4 for before, after in itertools.pairwise(ordered)]
    start, end = LEFT + 30.0, WIDTH - RIGHT - 60.0
    total = sum(gaps) or 1.0
    places = [start + (end - start) * reached / total for reached in itertools.accumulate([0.0, *gaps])]
    return Warped(tuple(ordered), tuple(places))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """An operation or a fault, in seconds since the first operation; without an end it is still going on."""

    start: float
    end: float | None
    label: str
    who: str = ""
    kind: str = ""


def diagram(operations: Sequence[Operation], faults: Sequence[Fault], *, origin_ns: int, ordered: bool) -> Markup:
    """Draw up to `OPERATIONS_LIMIT` operations; `ordered` adds arrows from what had returned to what began after."""
    chosen = sorted(operations, key=lambda operation: operation.invoke_ns)[:OPERATIONS_LIMIT]
    zero_ns = chosen[0].invoke_ns
    bars = [_bar(operation, zero_ns) for operation in chosen]
    last = max(t for bar in bars for t in _edges(bar))
    bands = [band for band in (_band(fault, (zero_ns - origin_ns) / 1e9) for fault in faults) if _meets(band, last)]
    x = warp([t for stretch in (*bars, *bands) for t in _edges(stretch) if t <= last])

    band_lines = pack([(x(band.start), x(band.start) + text_width(band.label)) for band in bands])
    y = float(TOP + LINE * max(band_lines, default=0))
    tops: dict[str, float] = {}
    label_lines: dict[Stretch, int] = {}
    for who in dict.fromkeys(bar.who for bar in bars):
        mine = [bar for bar in bars if bar.who == who]
        packed = pack([_label_span(x(bar.start), bar.label) for bar in mine])
        label_lines |= dict(zip(mine, packed, strict=True))
        tops[who] = y + LINE * (max(packed) + 1) + 6
        y = tops[who] + BAR + 8
    tick_lines = pack([_tick_span(x(t), _tick(t)) for t in x.moments])

    svg = figure(
        width=WIDTH,
        height=y + 16 + 12 * (max(tick_lines) + 1),
        title="Operations in time order",
        description="; ".join(bar.label for bar in bars) + ". Time is not to scale.",
        class_="spacetime",
    )
    for band, line in zip(bands, band_lines, strict=True):
        left, right = _ends(band, x)
        svg.rect(left, 4, right - left, y - 4, "band", title=band.label)
        svg.line(left, 4, left, y, "band-edge")
        svg.label(left + 4, 15 + LINE * line, clipped(band.label, WIDTH - left - 8), "band-label")
    for t, line in zip(x.moments, tick_lines, strict=True):
        svg.line(x(t), TOP, x(t), y + 4, "grid")
        svg.label(x(t), y + 16 + 12 * line, _tick(t), "tick", anchor="middle")
    for who, top in tops.items():
        svg.line(LEFT, top + BAR / 2, WIDTH - RIGHT, top + BAR / 2, "axis")
        svg.label(0, top + BAR - 3, clipped(who, LEFT - 8), "strong")
    for bar in bars:
        left, right = _ends(bar, x)
        svg.rect(left, tops[bar.who], max(right - left, 4), BAR, f"op {bar.kind}", title=bar.label, rx=2)
        svg.label(_label_span(left, bar.label)[0], tops[bar.who] - 5 - LINE * label_lines[bar], bar.label)
    if ordered:
        for first, second in itertools.pairwise(bars):
            if first.end is not None and first.end < second.start:
                middle = BAR / 2
                _arrow(svg, (x(first.end), tops[first.who] + middle), (x(second.start), tops[second.who] + middle))
    return svg.markup()


def _bar(operation: Operation, zero_ns: int) -> Stretch:
    end = None if operation.return_ns is None else (operation.return_ns - zero_ns) / 1e9
    kind = operation.outcome if operation.outcome in ("ok", "fail") else "unknown"
    start = (operation.invoke_ns - zero_ns) / 1e9
    return Stretch(start=start, end=end, label=_label(operation), who=operation.who, kind=kind)


def _band(fault: Fault, zero_s: float) -> Stretch:
    end = None if fault.end_t is None else fault.end_t - zero_s
    return Stretch(start=fault.start_t - zero_s, end=end, label=fault.title)


def _edges(stretch: Stretch) -> list[float]:
    return [stretch.start] if stretch.end is None else [stretch.start, stretch.end]


def _meets(band: Stretch, last: float) -> bool:
    return band.start <= last and (band.end is None or band.end >= 0)


def _ends(stretch: Stretch, x: Warped) -> tuple[float, float]:
    return x(stretch.start), WIDTH - RIGHT if stretch.end is None else x(stretch.end)


def _label(operation: Operation) -> str:
    place = "" if operation.offset is None else f" at offset {operation.offset}"
    end = operation.outcome if operation.return_ns is not None else f"{operation.outcome}, never answered"
    return f"#{operation.op} {operation.kind}{place}: {end}"[:90]


def _label_span(x: float, label: str) -> tuple[float, float]:
    left = max(LEFT, min(x, WIDTH - RIGHT - text_width(label, LABEL_SIZE)))
    return left, left + text_width(label, LABEL_SIZE)


def _tick(t: float) -> str:
    sign = "+" if t > 0 else "\N{MINUS SIGN}"
    return f"{sign}{words.span(abs(t))}" if t else "0"


def _tick_span(x: float, label: str) -> tuple[float, float]:
    half = text_width(label, TICK_SIZE) / 2
    return x - half, x + half


def _arrow(svg: Node, start: tuple[float, float], end: tuple[float, float]) -> None:
    (x1, y1), (x2, y2) = start, end
    length = math.hypot(x2 - x1, y2 - y1)
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    svg.line(x1, y1, x2 - 7 * ux, y2 - 7 * uy, "before")
    corners = [(x2, y2), (x2 - 8 * ux - 4 * uy, y2 - 8 * uy + 4 * ux), (x2 - 8 * ux + 4 * uy, y2 - 8 * uy - 4 * ux)]
    svg.add("polygon", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in corners), class_="before-head")
