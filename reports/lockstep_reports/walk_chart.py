"""A walk as a picture: how large the belief was after each step, how long each took, and where the cluster changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from lockstep_reports import words
from lockstep_reports.scales import Linear, Log, decades
from lockstep_reports.svg import Node, figure

WIDTH = 1040
LEFT, RIGHT = 84, 12
PANEL = 84
GAP = 34
LANE = 16
COLUMNS = 500
"""With more steps than this several share a column, which shows the most of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What is drawn of one step."""

    step: int
    words: str
    belief: int
    took_s: float
    disturbance: bool
    decisions: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        states = words.plural(self.belief, "state")
        return "\n".join([f"{self.step}. {self.words}: {states}, {words.span(self.took_s)}", *self.decisions])


def chart(points: Sequence[Point], *, diverged: bool) -> Markup:
    """Draw a walk that has steps."""
    columns = _columns(points)
    last = points[-1].step
    x = Linear(low=0.5, high=last + (1.5 if diverged else 0.5), start=LEFT, end=WIDTH - RIGHT)
    height = 2 * LANE + 8 + 2 * (PANEL + GAP) + 24
    bottom = height - 24
    svg = figure(
        width=WIDTH, height=height, title="The walk", description=_described(points, diverged), class_="timeline walk"
    )
    for tick in x.ticks(10):
        if tick >= 1:
            svg.line(x(tick), 2 * LANE, x(tick), bottom, "grid")
            svg.label(x(tick), bottom + 14, f"{tick:g}", "tick", anchor="middle")
    svg.label(LEFT - 8, bottom + 14, "step", "tick", anchor="end")
    _lane(svg, x, 0, "disturbed", "disturbance", [point for point in points if point.disturbance])
    _lane(svg, x, LANE, "decided", "decision", [point for point in points if point.decisions])
    top = 2 * LANE + 8
    belief = _panel(svg, top, "States in the belief, log scale", [float(point.belief) for point in points])
    took = _panel(svg, top + PANEL + GAP, "Time per step, log scale", [point.took_s for point in points], _seconds)
    for column in columns:
        left, right = x(column[0].step - 0.5), x(column[-1].step + 0.5)
        width = max((right - left) * 0.8, 0.8)
        _bar(svg, left, width, belief, max(point.belief for point in column), "belief")
        _bar(svg, left, width, took, max(point.took_s for point in column), "took")
        title = max(column, key=lambda point: point.belief).title
        svg.rect(left, 0, right - left, bottom, "hit", title=title)
    if diverged:
        svg.line(x(last + 1), 0, x(last + 1), bottom, "before")
        svg.label(x(last + 1) - 6, LANE - 5, "diverged", "strong", anchor="end")
    return svg.markup()


def _columns(points: Sequence[Point]) -> list[Sequence[Point]]:
    size = -(-len(points) // COLUMNS)
    return [points[start : start + size] for start in range(0, len(points), size)]


def _lane(svg: Node, x: Linear, y: float, name: str, class_: str, points: Sequence[Point]) -> None:
    svg.label(LEFT - 8, y + 11, name, "tick", anchor="end")
    for point in points:
        svg.rect(x(point.step) - 1.5, y + 2, 3, LANE - 5, class_, rx=1)


def _panel(
    svg: Node, top: float, title: str, values: Sequence[float], said: Callable[[float], str] = "{:g}".format
) -> Log:
    svg.label(LEFT, top + 12, title, "panel-title")
    bottom = top + 20 + PANEL
    y = decades(values, start=bottom, end=top + 20)
    for tick in y.ticks():
        svg.line(LEFT, y(tick), WIDTH - RIGHT, y(tick), "axis" if tick == y.low else "grid")
        svg.label(LEFT - 8, y(tick) + 3.5, said(tick), "tick", anchor="end")
    return y


def _bar(svg: Node, left: float, width: float, y: Log, value: float, class_: str) -> None:
    """From the axis up; what is at the very bottom of the scale still shows."""
    top = min(y(value), y.start - 1.5)
    svg.rect(left, top, width, y.start - top, f"bar {class_}")


def _seconds(tick: float) -> str:
    return f"{tick:g} s" if tick >= 1 else f"{tick * 1e3:g} ms"


def _described(points: Sequence[Point], diverged: bool) -> str:
    largest = max(points, key=lambda point: point.belief)
    slowest = max(points, key=lambda point: point.took_s)
    return (
        f"{words.plural(len(points), 'step')}{', then a divergence' if diverged else ''}. The belief was largest after "
        f"step {largest.step}, with {words.plural(largest.belief, 'state')}. Step {slowest.step} took longest, "
        f"{words.span(slowest.took_s)}."
    )
