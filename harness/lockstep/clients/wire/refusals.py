"""Errors by which a broker refuses a request: permanent, or retriable."""

from __future__ import annotations

from datetime import timedelta

from kio.schema.errors import ErrorCode
from kio.static.primitive import i32Timedelta

from lockstep.errors import ClusterError

DONE_WITHIN = i32Timedelta.parse(timedelta(seconds=10))
"""How long a broker may take to do what it is asked for."""
ANSWER_S = 15.0


class Refused(ClusterError):
    """A broker said no; `code` is Kafka's reason."""

    def __init__(self, what: str, code: ErrorCode, message: str | None) -> None:
        super().__init__(f"{what} was refused: {code.name}" + (f" ({message})" if message else ""))
        self.code = code


class RefusedForNow(Refused):
    """The same may be asked again: the controller moves, a coordinator loads, a leader is being elected."""


def require_done(code: ErrorCode, what: str, message: str | None = None) -> None:
    """Raise what an error code means, if it is one; `what` completes the sentence "... was refused"."""
    if code is not ErrorCode.none:
        raise (RefusedForNow if code.retriable else Refused)(what, code, message)
