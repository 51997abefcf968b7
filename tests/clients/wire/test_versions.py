"""Which version of a request a node is sent, by what it says it knows."""

from __future__ import annotations

import pytest
from kio.schema.produce.v11.request import ProduceRequest
from kio.static.primitive import i16

from lockstep.clients.wire.connection import milliseconds
from lockstep.clients.wire.versions import ALIKE, chosen
from lockstep.errors import ClusterError

PRODUCE = ProduceRequest(acks=i16(1), timeout=milliseconds(1), topic_data=())
KEY = int(PRODUCE.__api_key__)


@pytest.mark.parametrize(("newest", "version"), [(9, 9), (10, 10), (11, 11), (13, 11)])
def test_the_newest_that_both_know_is_sent(newest: int, version: int) -> None:
    assert chosen(PRODUCE, {KEY: newest}) == version


@pytest.mark.parametrize("newest", [{KEY: 8}, {}], ids=["too-old", "not-known"])
def test_who_knows_none_that_says_the_same_is_not_asked(newest: dict[int, int]) -> None:
    with pytest.raises(ClusterError, match="knows ProduceRequest up to version"):
        chosen(PRODUCE, newest)


def test_there_is_a_choice_for_each() -> None:
    assert all(0 < oldest < request.__version__ for request, oldest in ALIKE.items())
