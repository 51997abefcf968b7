"""From values to positions, with the ticks a person would have chosen."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """Maps [low, high] to [start, end]; what lies outside is drawn at the edge, never beyond the picture."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def ticks(self, about: int) -> list[float]:
        step = nice_step((self.high - self.low) / max(about, 1))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [index * step for index in range(first, last + 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """Maps [low, high], both powers of ten, to [start, end] by decades."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = math.log10(max(value, self.low) / self.low) / math.log10(self.high / self.low)
        return self.start + min(1.0, share) * (self.end - self.start)

    def ticks(self) -> list[float]:
        first, last = round(math.log10(self.low)), round(math.log10(self.high))
        return [10.0**power for power in range(first, last + 1)]


def nice_step(rough: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    size = 10.0 ** math.floor(math.log10(rough))
    return next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough * (1 - 1e-9))


def from_zero(values: Iterable[float], *, start: float, end: float) -> Linear:
    """A scale from 0 to a round number just above the largest value."""
    largest = max((value for value in values if value > 0), default=1.0)
    step = nice_step(largest / 3)
    return Linear(low=0, high=step * math.ceil(largest / step * (1 + 1e-9)), start=start, end=end)


def decades(values: Iterable[float], *, start: float, end: float) -> Log:
    """A logarithmic scale over whole decades that holds every positive value."""
    positive = [value for value in values if value > 0] or [1.0]
    low = math.floor(math.log10(min(positive)))
    high = max(math.ceil(math.log10(max(positive))), low + 1)
    return Log(low=10.0**low, high=10.0**high, start=start, end=end)


def pack(spans: Iterable[tuple[float, float]], *, gap: float = 6) -> list[int]:
    """A row for each (left, right), in order, so that no two in one row touch."""
    ends: list[float] = []
    rows: list[int] = []
    for left, right in spans:
        row = next((index for index, end in enumerate(ends) if end + gap <= left), len(ends))
        ends[row : row + 1] = [right]
        rows.append(row)
    return rows
