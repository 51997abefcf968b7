"""Waiting for a condition: the only way anything in Lockstep waits to be ready."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import tenacity

from lockstep.errors import ClusterError

T = TypeVar("T")


class WaitTimeout(ClusterError):
    """A condition did not become true in time; carries the last value that was seen."""

    def __init__(self, what: str, timeout_s: float, last: object) -> None:
        super().__init__(f"gave up waiting for {what} after {timeout_s:g} s (last seen: {last!r})")
        self.what = what
        self.last = last


def wait_until(
    condition: Callable[[], T],
    *,
    timeout_s: float,
    what: str,
    interval_s: float = 0.05,
    retry_on: tuple[type[BaseException], ...] = (),
) -> T:
    """Call `condition` until it returns something true, and return that.

    Exceptions named in `retry_on` count as "not yet". `what` completes the sentence "gave up waiting for ...".
    """
    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_delay(timeout_s),
        wait=tenacity.wait_fixed(interval_s),
        retry=tenacity.retry_if_result(lambda value: not value) | tenacity.retry_if_exception_type(retry_on),
    )
    try:
        return retrying(condition)
    except tenacity.RetryError as error:
        attempt = error.last_attempt
        last = attempt.exception() if attempt.failed else attempt.result()
        raise WaitTimeout(what, timeout_s, last) from None
