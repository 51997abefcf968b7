"""How numbers, times and free fields are worded, the same in every output."""

from __future__ import annotations

from collections.abc import Mapping

SECRET_MARKS = ("password", "secret", "jaas", "token", "credential", "ssl.key")


def count(number: int) -> str:
    return f"{number:,}"


def plural(number: int, one: str, many: str | None = None) -> str:
    """`1 write`, `2 writes`."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def seconds(value: float) -> str:
    """A moment or a length, to what an eye can use: `5.1 s`, `2 min 5 s`."""
    if abs(value) >= 120:
        minutes, rest = divmod(round(value), 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{value:.1f} s"


def moment(value: float) -> str:
    """A point in the run, to the millisecond: operations are told apart by it."""
    return f"{value:.3f} s"


def span(value_s: float) -> str:
    """A length between a microsecond and minutes, in the unit that fits: `0.4 ms`, `31 ms`, `2.4 s`."""
    size = abs(value_s)
    if size < 0.001:
        return f"{value_s * 1e3:.2f} ms"
    if size < 0.0995:
        return f"{value_s * 1e3:.1f} ms"
    if size < 0.9995:
        return f"{value_s * 1e3:.0f} ms"
    return f"{value_s:.2f} s" if size < 9.995 else seconds(value_s)


def milliseconds(value_ms: float) -> str:
    return span(value_ms / 1e3)


def listing(items: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def fact(key: str, value: object) -> str:
    """A free field in words: `gone_after_ms: 12` is "gone after 12 ms", `in_isr: true` is "in ISR"."""
    if isinstance(value, bool):
        return label(key) if value else f"not {label(key)}"
    name, _, unit = key.rpartition("_")
    if name and unit in ("ms", "s", "ns") and isinstance(value, int | float):
        return f"{label(name)} {shown(key, value)} {unit}"
    return f"{label(key)} {shown(key, value)}"


def label(key: str) -> str:
    return " ".join("ISR" if word == "isr" else word for word in key.split("_") if word)


def plain(value: object) -> str:
    """A free JSON value in words; nested ones are flattened."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(fact(str(key), item) for key, item in value.items()) or "nothing"
    if isinstance(value, list):
        return ", ".join(plain(item) for item in value) or "none"
    return str(value)


def shown(key: str, value: object) -> str:
    """The value of a free field, unless its name says that it is a secret."""
    return "(hidden)" if any(mark in key.lower() for mark in SECRET_MARKS) else plain(value)


def target(value: object) -> str:
    """A plan's target in words: `leader of orders-0`."""
    if not isinstance(value, Mapping):
        return plain(value)
    fields = dict(value)
    role = str(fields.pop("role", ""))
    topic, partition = fields.pop("topic", None), fields.pop("partition", None)
    if topic is not None:
        place = f"{topic}-{partition}" if partition is not None else str(topic)
        role = f"{role} of {place}" if role else place
    rest = plain(fields) if fields else ""
    return " ".join(part for part in (role, rest) if part)
