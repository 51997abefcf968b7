from __future__ import annotations

import pytest

from lockstep.wait import WaitTimeout, wait_until


def test_returns_the_first_true_value() -> None:
    values = iter([0, "", None, 7, 8])
    assert wait_until(lambda: next(values), timeout_s=5, what="seven", interval_s=0) == 7


def test_an_error_shows_what_was_last_seen() -> None:
    with pytest.raises(WaitTimeout, match=r"gave up waiting for a leader after 0\.01 s \(last seen: \[\]\)"):
        wait_until(list, timeout_s=0.01, what="a leader", interval_s=0)


def test_named_exceptions_mean_not_yet() -> None:
    answers: list[Exception | str] = [ConnectionRefusedError("no"), "up"]

    def ask() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert wait_until(ask, timeout_s=5, what="an answer", interval_s=0, retry_on=(OSError,)) == "up"


def test_other_exceptions_pass_through() -> None:
    def broken() -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        wait_until(broken, timeout_s=5, what="nothing", retry_on=(OSError,))
