from __future__ import annotations

import pytest

from lockstep.clients.values import decode, encode
from lockstep.history.schema import value_id


def test_a_value_comes_back() -> None:
    value = value_id(3, 41)
    assert decode("run-1", "orders", encode("run-1", "orders", value)) == value


@pytest.mark.parametrize(
    "payload",
    [
        None,
        b"",
        b"hello",
        b"run-1/orders/",
        b"run-1/orders/x",
        b"run-1/orders/007",
        b"run-1/orders/99999999999999999999999",
        b"run-1/payments/7",
        b"run-2/orders/7",
    ],
)
def test_what_this_run_did_not_write_to_this_topic_is_no_value(payload: bytes | None) -> None:
    assert decode("run-1", "orders", payload) is None
