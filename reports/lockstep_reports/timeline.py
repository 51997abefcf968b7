"""The timeline: every panel on one time axis, with the faults as bands through all of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from lockstep_reports import lanes, words
from lockstep_reports.buckets import Bucket, Buckets
from lockstep_reports.content import Fault, Lane, Latency, Series
from lockstep_reports.scales import Linear, Log, decades, from_zero, pack
from lockstep_reports.svg import Node, clipped, figure, text_width

WIDTH = 1040
LEFT, RIGHT = 84, 12
ROW = 19
PANEL = 112
SMALL_PANEL = 40
GAP = 36

QUANTILES: tuple[tuple[str, str, Callable[[Latency], float]], ...] = (
    ("p50", "p50", lambda latency: latency.p50_ms),
    ("p95", "p95", lambda latency: latency.p95_ms),
    ("p99", "p99", lambda latency: latency.p99_ms),
    ("max", "pmax", lambda latency: latency.max_ms),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The picture, and where its plot area lies, for the pointer."""

    svg: Markup
    left: float
    right: float
    seconds: float
    hidden_lanes: int


@dataclass(slots=True)
class _Canvas:
    """Where the next panel goes."""

    svg: Node
    x: Linear
    y: float

    def panel(self, height: float, title: str) -> tuple[float, float]:
        """Reserve a titled panel; returns its top and bottom."""
        self.svg.label(LEFT, self.y + 12, title, "panel-title")
        top = self.y + 20
        self.y = top + height + GAP - 20
        self.svg.line(LEFT, top + height, WIDTH - RIGHT, top + height, "axis")
        return top, top + height


def timeline(series: Series, rows: Buckets, faults: Sequence[Fault]) -> Timeline:
    """Draw phases, faults, throughput, latency, unknown outcomes and leaders over the time of the run."""
    shown = lanes.chosen(series.leaders)
    seconds = max([series.seconds, *(row.t + rows.width_s for row in rows.rows)], default=0.0)
    seconds = seconds if 0 < seconds < 1e9 else 1.0
    x = Linear(low=0, high=seconds, start=LEFT, end=WIDTH - RIGHT)
    bands = [fault for fault in faults if fault.start_t <= seconds]
    band_rows = pack([(x(it.start_t), max(_end(it, x), x(it.start_t) + text_width(it.title) + 8)) for it in bands])
    header = ROW * (1 + (max(band_rows) + 1 if band_rows else 0)) + 8
    lanes_height = sum(map(lanes.height, shown)) + (GAP if shown else 0)
    has_unknown = any(row.unknown for row in rows.rows)
    height = header + 2 * (PANEL + GAP) + (SMALL_PANEL if has_unknown else 0) + GAP + lanes_height + 30

    svg = figure(
        width=WIDTH,
        height=height,
        title="Timeline of the run",
        description=_described(rows, bands, shown),
        class_="timeline",
    )
    bottom = height - 26
    for fault in bands:
        svg.rect(x(fault.start_t), 0, _end(fault, x) - x(fault.start_t), bottom, "band", title=_band_title(fault))
    _time_axis(svg, x, top=header, bottom=bottom)
    for fault in bands:
        svg.line(x(fault.start_t), ROW, x(fault.start_t), bottom, "band-edge")
        if fault.end_t is not None:
            svg.line(_end(fault, x), ROW, _end(fault, x), bottom, "band-edge healed")
    _phases(svg, series, x)
    for fault, row in zip(bands, band_rows, strict=True):
        _band_label(svg, fault, x, ROW * (1 + row) + 2)

    canvas = _Canvas(svg, x, header)
    _throughput(canvas, series, rows)
    _latency(canvas, rows)
    _unknown(canvas, rows, has_unknown)
    _leaders(canvas, shown)
    svg.line(LEFT, 0, LEFT, bottom, "cursor")
    return Timeline(
        svg=svg.markup(),
        left=LEFT / WIDTH,
        right=(WIDTH - RIGHT) / WIDTH,
        seconds=seconds,
        hidden_lanes=len(series.leaders) - len(shown),
    )


def _end(fault: Fault, x: Linear) -> float:
    return max(x(x.high if fault.end_t is None else fault.end_t), x(fault.start_t) + 2)


def _band_title(fault: Fault) -> str:
    end = "never healed" if fault.end_t is None else f"healed at {words.seconds(fault.end_t)}"
    asked = f" ({fault.asked})" if fault.asked and fault.resolved else ""
    return f"{fault.title}{asked}: from {words.seconds(fault.start_t)}, {end}"


def _band_label(svg: Node, fault: Fault, x: Linear, y: float) -> None:
    start, end = x(fault.start_t), _end(fault, x)
    svg.rect(start, y, end - start, ROW - 4, "band-bar", title=_band_title(fault), rx=2)
    room = WIDTH - RIGHT - start - 8
    text = fault.title if fault.end_t is not None else f"{fault.title} (never healed)"
    svg.label(start + 5, y + ROW - 8, clipped(text, max(room, end - start)), "band-label")


def _phases(svg: Node, series: Series, x: Linear) -> None:
    svg.label(LEFT - 8, 12, "phase", "tick", anchor="end")
    for phase in series.phases:
        start, end = x(phase.start_t), x(x.high if phase.end_t is None else phase.end_t)
        title = f"{phase.name}: from {words.seconds(phase.start_t)}"
        if phase.end_t is not None:
            title = f"{title} to {words.seconds(phase.end_t)}"
        if end - start < 1:
            continue
        svg.rect(start, 0, end - start - 1, ROW - 3, "phase", title=title)
        svg.label(start + 5, 12, clipped(phase.name, end - start - 8), "tick")


def _time_axis(svg: Node, x: Linear, *, top: float, bottom: float) -> None:
    for t in x.ticks(10):
        svg.line(x(t), top, x(t), bottom, "grid")
        svg.label(x(t), bottom + 14, f"{t:g} s", "tick", anchor="middle")


def _throughput(canvas: _Canvas, series: Series, rows: Buckets) -> None:
    top, bottom = canvas.panel(PANEL, "Throughput, records per second")
    acknowledged = [rows.per_second(row.acknowledged) for row in rows.rows]
    read = [rows.per_second(row.read) for row in rows.rows]
    # The final read is many times faster than the load, which it would flatten: it may leave the panel.
    loads = [
        (phase.start_t, phase.end_t) for phase in series.phases if phase.name == "load" and phase.end_t is not None
    ]
    during = [any(start <= row.t < end for start, end in loads) or not loads for row in rows.rows]
    y = from_zero(
        [*acknowledged, *(rate for rate, loaded in zip(read, during, strict=True) if loaded)], start=bottom, end=top
    )
    _value_axis(
        canvas.svg, [(tick, f"{tick:,.0f}" if tick >= 10 or tick == 0 else f"{tick:g}") for tick in y.ticks(3)], y
    )
    for start, end in rows.silences():
        title = f"No write was acknowledged between {words.seconds(start)} and {words.seconds(end)}"
        canvas.svg.rect(canvas.x(start), bottom - 5, canvas.x(end) - canvas.x(start), 5, "silence", title=title)
    _steps(canvas, rows, acknowledged, y, "acknowledged", filled=True)
    _steps(canvas, rows, read, y, "read", filled=False)
    beyond = [(rate, row.t) for rate, row in zip(read, rows.rows, strict=True) if rate > y.high]
    if beyond:
        fastest, _ = max(beyond)
        canvas.svg.label(canvas.x(beyond[0][1]) + 4, top + 12, f"↑ {fastest:,.0f}", "tick")
    _legend(canvas.svg, top, [("acknowledged", "acknowledged"), ("read", "read")])


def _steps(canvas: _Canvas, rows: Buckets, values: Sequence[float], y: Linear, class_: str, *, filled: bool) -> None:
    """Counts hold for a whole bucket, so they are drawn as steps."""
    if not values:
        return
    x = canvas.x
    points = [
        (x(t), y(value)) for row, value in zip(rows.rows, values, strict=True) for t in (row.t, row.t + rows.width_s)
    ]
    if filled:
        area = [(points[0][0], y(0)), *points, (points[-1][0], y(0))]
        canvas.svg.add("path", d=f"{_path(area)}Z", class_=f"area {class_}")
    canvas.svg.add("path", d=_path(points), class_=f"line {class_}")


def _latency(canvas: _Canvas, rows: Buckets) -> None:
    top, bottom = canvas.panel(PANEL, "Latency of acknowledged writes, log scale")
    measured = [(row, row.latency) for row in rows.rows if row.latency is not None]
    if not measured:
        canvas.svg.label(LEFT + 6, top + 20, "No write was acknowledged.", "tick")
        return
    y = decades([read(latency) for _, latency in measured for _, _, read in QUANTILES], start=bottom, end=top)
    _value_axis(canvas.svg, [(tick, _ms(tick)) for tick in y.ticks()], y)
    for _, class_, read in QUANTILES:
        for stretch in _unbroken(measured, rows.width_s):
            points = [(canvas.x(row.t + rows.width_s / 2), y(read(latency))) for row, latency in stretch]
            if len(points) == 1:
                canvas.svg.add("circle", cx=points[0][0], cy=points[0][1], r=2, class_=f"dot {class_}")
            else:
                canvas.svg.add("path", d=_path(points), class_=f"line {class_}")
    _legend(canvas.svg, top, [(text, class_) for text, class_, _ in QUANTILES])


def _ms(value: float) -> str:
    return f"{value / 1000:g} s" if value >= 1000 else f"{value:g} ms"


def _unbroken(measured: Sequence[tuple[Bucket, Latency]], width_s: float) -> list[list[tuple[Bucket, Latency]]]:
    """Stretches without a missing bucket: a line across a gap would invent measurements."""
    stretches: list[list[tuple[Bucket, Latency]]] = []
    for item in measured:
        if stretches and item[0].t - stretches[-1][-1][0].t < 1.5 * width_s:
            stretches[-1].append(item)
        else:
            stretches.append([item])
    return stretches


def _unknown(canvas: _Canvas, rows: Buckets, has_unknown: bool) -> None:
    if not has_unknown:
        canvas.svg.label(LEFT, canvas.y + 12, "No write had an unknown outcome", "panel-title")
        canvas.y += GAP
        return
    top, bottom = canvas.panel(SMALL_PANEL, "Writes with unknown outcome")
    y = from_zero([row.unknown for row in rows.rows], start=bottom, end=top)
    _value_axis(canvas.svg, [(0, "0"), (y.high, f"{y.high:,.0f}")], y)
    for row in rows.rows:
        if row.unknown:
            left, right = canvas.x(row.t), canvas.x(row.t + rows.width_s)
            title = f"{words.plural(row.unknown, 'write')} given up at {words.seconds(row.t)}: outcome unknown"
            canvas.svg.rect(
                left + 0.5,
                y(row.unknown),
                max(right - left - 1, 1),
                bottom - y(row.unknown),
                "unknown-bar",
                title=title,
            )


def _leaders(canvas: _Canvas, shown: Sequence[Lane]) -> None:
    if not shown:
        return
    canvas.svg.label(LEFT, canvas.y + 12, "Leaders, and below each the replicas in sync", "panel-title")
    canvas.y += 20
    palette = lanes.brokers(shown)
    for lane in shown:
        lanes.draw(canvas.svg, lane, palette, x=canvas.x, y=canvas.y, left=LEFT)
        canvas.y += lanes.height(lane)


def _value_axis(svg: Node, ticks: Sequence[tuple[float, str]], y: Linear | Log) -> None:
    for value, text in ticks:
        svg.line(LEFT, y(value), WIDTH - RIGHT, y(value), "grid")
        svg.label(LEFT - 8, y(value) + 4, text, "tick", anchor="end")


def _legend(svg: Node, top: float, items: Sequence[tuple[str, str]]) -> None:
    """Names of the lines, right-aligned on the line of the panel's title."""
    right = float(WIDTH - RIGHT)
    for text, class_ in reversed(items):
        left = right - text_width(text) - 6
        svg.label(right, top - 8, text, anchor="end")
        svg.line(left - 20, top - 12, left - 5, top - 12, f"line {class_}")
        right = left - 36


def _path(points: Sequence[tuple[float, float]]) -> str:
    """`M x y L …`, without the middle points of level stretches."""
    kept = [
        point
        for before, point, after in zip([None, *points], points, [*points[1:], None], strict=False)
        if not (before and after and before[1] == point[1] == after[1])
    ]
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in kept)


def _described(rows: Buckets, faults: Sequence[Fault], shown: Sequence[Lane]) -> str:
    """The chart in words, for a user who cannot see it."""
    parts = [_band_title(fault) for fault in faults[:5]]
    parts += [
        f"no write was acknowledged between {words.seconds(start)} and {words.seconds(end)}"
        for start, end in rows.silences()[:5]
    ]
    for lane in shown[:5]:
        leaders = [str(leader) for leader, _ in itertools.groupby(entry.leader for entry in lane.lane)]
        parts.append(f"{lane.name} was led by {', then '.join(leaders[:8])}")
    return "; ".join(parts) or "No fault was active"
