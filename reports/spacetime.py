"""A space-time diagram of a few operations: who did what, and what had ended before what began.

Operations that show an anomaly last milliseconds and lie seconds apart, so time is not to scale: every moment at which
something begins or ends gets its own place, in order, with room that grows with the logarithm of the time between.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from reports import words
from reports.content import Fault, Operation
from reports.scales import pack
from reports.svg import Node, clipped, figure, text_width

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


def diagram(operations: Sequence[Operation], faults: Sequence[Fault], *, origin_ns: int, ordered: bool) -> Markup:
    """Draw up to `OPERATIONS_LIMIT` operations; `ordered` adds arrows from what had returned to what began after."""
    chosen = sorted(operations, key=lambda operation: operation.invoke_ns)[:OPERATIONS_LIMIT]
    zero_ns = chosen[0].invoke_ns
    offset_s = (zero_ns - origin_ns) / 1e9
    starts = [_since(operation.invoke_ns, zero_ns) for operation in chosen]
    ends = [None if op.return_ns is None else _since(op.return_ns, zero_ns) for op in chosen]
    last = max([*starts, *(end for end in ends if end is not None)])
    bands = [
        (fault, fault.start_t - offset_s, None if fault.end_t is None else fault.end_t - offset_s) for fault in faults
    ]
    bands = [band for band in bands if band[1] <= last and (band[2] is None or band[2] >= 0)]
    edges = [t for _, start, end in bands for t in (start, end) if t is not None and t <= last]
    x = warp([*starts, *(end for end in ends if end is not None), *edges])

    labels = [_label(operation) for operation in chosen]
    rows = {
        who: [index for index, op in enumerate(chosen) if op.who == who]
        for who in dict.fromkeys(op.who for op in chosen)
    }
    band_rows = pack([(x(start), x(start) + text_width(fault.title)) for fault, start, _ in bands])
    y = TOP + LINE * max(band_rows, default=0)
    tops: dict[str, float] = {}
    lines: dict[int, int] = {}
    for who, indices in rows.items():
        packed = pack([_label_span(x(starts[index]), labels[index]) for index in indices])
        lines |= dict(zip(indices, packed, strict=True))
        y += LINE * (max(packed) + 1) + 6
        tops[who] = y
        y += BAR + 8
    ticks = pack([_tick_span(x(t), _tick(t)) for t in x.moments])
    height = y + 16 + 12 * (max(ticks) + 1)

    svg = figure(
        width=WIDTH,
        height=height,
        title="Operations in time order",
        description="; ".join(labels) + ". Time is not to scale.",
        class_="spacetime",
    )
    for (fault, start, end), row in zip(bands, band_rows, strict=True):
        right = WIDTH - RIGHT if end is None else x(end)
        svg.rect(x(start), 4, right - x(start), y - 4, "band", title=fault.title)
        svg.line(x(start), 4, x(start), y, "band-edge")
        svg.label(x(start) + 4, 15 + LINE * row, clipped(fault.title, WIDTH - x(start) - 8), "band-label")
    for t, row in zip(x.moments, ticks, strict=True):
        left, right = _tick_span(x(t), _tick(t))
        svg.line(x(t), TOP, x(t), y + 4, "grid")
        svg.label((left + right) / 2, y + 16 + 12 * row, _tick(t), "tick", anchor="middle")
    for who in rows:
        svg.line(LEFT, tops[who] + BAR / 2, WIDTH - RIGHT, tops[who] + BAR / 2, "axis")
        svg.label(0, tops[who] + BAR - 3, clipped(who, LEFT - 8), "strong")
    for index, operation in enumerate(chosen):
        end = ends[index]
        right = WIDTH - RIGHT if end is None else x(end)
        top = tops[operation.who]
        kind = operation.outcome if operation.outcome in ("ok", "fail") else "unknown"
        svg.rect(x(starts[index]), top, max(right - x(starts[index]), 4), BAR, f"op {kind}", title=labels[index], rx=2)
        left, _ = _label_span(x(starts[index]), labels[index])
        svg.label(left, top - 5 - LINE * lines[index], labels[index])
    if ordered:
        _arrows(svg, chosen, starts, ends, x, tops)
    return svg.markup()


def _since(time_ns: int, zero_ns: int) -> float:
    return (time_ns - zero_ns) / 1e9


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


def _arrows(
    svg: Node,
    operations: Sequence[Operation],
    starts: Sequence[float],
    ends: Sequence[float | None],
    x: Warped,
    tops: dict[str, float],
) -> None:
    """From each return to the next invocation that began after it: the order that real time imposes."""
    for first, second in itertools.pairwise(range(len(operations))):
        end = ends[first]
        if end is None or end >= starts[second]:
            continue
        x1, y1 = x(end), tops[operations[first].who] + BAR / 2
        x2, y2 = x(starts[second]), tops[operations[second].who] + BAR / 2
        length = math.hypot(x2 - x1, y2 - y1)
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        svg.line(x1, y1, x2 - 7 * ux, y2 - 7 * uy, "before")
        corners = [(x2, y2), (x2 - 8 * ux - 4 * uy, y2 - 8 * uy + 4 * ux), (x2 - 8 * ux + 4 * uy, y2 - 8 * uy - 4 * ux)]
        svg.add("polygon", points=" ".join(f"{px:.1f},{py:.1f}" for px, py in corners), class_="before-head")
