from __future__ import annotations

import json
import random
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lockstep.errors import ClusterError, UsageError
from lockstep.network.conditions import BlackHole, Condition, Cut, Delay, HalfOpen, OneWay, Open, Reset, Throttle
from lockstep.network.links import Links, Route, Traffic
from lockstep.network.topology import Link
from lockstep.network.toxiproxy import ProxyServer
from lockstep.spec.cluster import Listener
from lockstep.wait import wait_until
from tests.network.wires import PATIENCE_S, Ends, Wires, free_address, passes, receive, silent, works

EVERY: tuple[Condition, ...] = (
    Open(),
    Cut(),
    BlackHole(),
    OneWay(),
    Delay(200, 50, 7),
    Throttle(64),
    Reset(),
    HalfOpen(),
)
LASTING = tuple(condition for condition in EVERY if not isinstance(condition, Cut | Reset))
"""Those that a connection survives."""


def test_an_open_link_passes_every_byte_and_counts_it(wires: Wires) -> None:
    ends = wires.connect()
    there, back = random.randbytes(3_000_000), random.randbytes(1_000_001)
    with ThreadPoolExecutor() as pool:
        pool.submit(ends.source.sendall, there)
        pool.submit(ends.destination.sendall, back)
        assert receive(ends.destination, len(there)) == there
        assert receive(ends.source, len(back)) == back
    _counted(wires, Traffic(to_destination=len(there), to_source=len(back)))
    assert works(wires.connect())
    _counted(wires, Traffic(to_destination=len(there) + 4, to_source=len(back) + 4))
    assert wires.links.traffic()[wires.other] == Traffic(to_destination=0, to_source=0)


@pytest.mark.parametrize("end", ["source", "destination"])
def test_the_end_of_a_connection_is_passed_on_after_all_its_bytes(wires: Wires, end: str) -> None:
    sender, receiver = _ordered(wires.connect(), end)
    words = random.randbytes(500_000)

    def say() -> None:
        sender.sendall(words)
        sender.close()

    with ThreadPoolExecutor() as pool:
        pool.submit(say)
        assert receive(receiver, len(words) + 1) == words


def test_cut(wires: Wires) -> None:
    ends, other = wires.connect(), wires.connect(wires.other)
    wires.links.cut(wires.link)
    assert wires.links.is_cut(wires.link)
    assert _ended(ends.source)
    assert _ended(ends.destination)
    with pytest.raises(ConnectionRefusedError):
        wires.connect()
    assert works(other)
    assert not wires.links.is_cut(wires.other)
    wires.links.mend(wires.link)
    assert works(wires.connect())


def test_black_hole(wires: Wires) -> None:
    before, other = wires.connect(), wires.connect(wires.other)
    assert works(before)
    wires.links.impose(wires.link, BlackHole())
    traffic = wires.links.traffic()
    for ends in (before, wires.connect()):
        ends.source.sendall(b"request")
        ends.destination.sendall(b"response")
        assert silent(ends.destination)
        assert silent(ends.source)
    assert works(other)
    assert wires.links.traffic()[wires.link] == traffic[wires.link]
    wires.links.mend(wires.link)
    assert receive(before.destination, 7) == b"request"
    assert receive(before.source, 8) == b"response"
    assert works(before)
    assert works(wires.connect())


@pytest.mark.parametrize("end", ["source", "destination"])
def test_a_black_hole_tells_nobody_of_an_end(wires: Wires, end: str) -> None:
    closing, waiting = _ordered(wires.connect(), end)
    wires.links.impose(wires.link, BlackHole())
    closing.sendall(b"last words")
    closing.close()
    assert silent(waiting)
    wires.links.mend(wires.link)
    assert receive(waiting, 100) == b"last words"


def test_one_way(wires: Wires) -> None:
    before, other = wires.connect(), wires.connect(wires.other)
    wires.links.impose(wires.link, OneWay())
    for ends in (before, wires.connect()):
        assert passes(ends.source, ends.destination, b"request")
        ends.destination.sendall(b"response")
        assert silent(ends.source)
    assert works(other)
    _counted(wires, Traffic(to_destination=14, to_source=0))
    wires.links.mend(wires.link)
    assert receive(before.source, 8) == b"response"
    assert works(before)
    assert works(wires.connect())


def test_one_way_tells_only_the_destination_of_an_end(wires: Wires) -> None:
    quits, waits = wires.connect(), wires.connect()
    wires.links.impose(wires.link, OneWay())
    quits.source.close()
    assert _ended(quits.destination)
    waits.destination.close()
    assert silent(waits.source)
    wires.links.mend(wires.link)
    assert _ended(waits.source)


def test_delay_is_added_each_way(wires: Wires) -> None:
    before, other = wires.connect(), wires.connect(wires.other)
    wires.links.impose(wires.link, Delay(300))
    for ends in (before, wires.connect()):
        for sender, receiver in (ends, reversed(ends)):
            started = time.monotonic()
            assert passes(sender, receiver)
            assert time.monotonic() - started >= 0.3  # that it is not less is the delay; more may be the machine
    assert works(other)


def test_a_delayed_stream_keeps_its_order_and_what_is_under_way_arrives_when_mended(wires: Wires) -> None:
    ends = wires.connect()
    words = random.randbytes(2_000_000)
    wires.links.impose(wires.link, Delay(40, 40, 3))
    with ThreadPoolExecutor() as pool:
        pool.submit(ends.source.sendall, words)
        assert receive(ends.destination, 1_000_000) == words[:1_000_000]
        wires.links.impose(wires.link, Delay(600_000))
        wires.links.mend(wires.link)
        assert receive(ends.destination, 1_000_000) == words[1_000_000:]
    assert works(ends)


def test_all_connections_of_a_throttled_link_share_its_rate(wires: Wires) -> None:
    ends, other = [wires.connect() for _ in range(2)], wires.connect(wires.other)
    words = random.randbytes(50_000)
    wires.links.impose(wires.link, Throttle(100))
    started = time.monotonic()
    for sender, _ in ends:
        sender.sendall(words)
    assert passes(other.source, other.destination, random.randbytes(50_000))
    for _, receiver in ends:
        assert receive(receiver, len(words)) == words
    assert time.monotonic() - started >= 0.9  # 100 kB at 100 kB/s, first bytes first
    for receiver, sender in ends:
        assert passes(sender, receiver)


def test_what_a_throttled_link_has_not_passed_on_arrives_when_it_is_mended(wires: Wires) -> None:
    ends = wires.connect()
    words = random.randbytes(3_000_000)
    wires.links.impose(wires.link, Throttle(1))
    with ThreadPoolExecutor() as pool:
        pool.submit(ends.source.sendall, words)
        assert receive(ends.destination, 100) == words[:100]
        assert wires.links.traffic()[wires.link].to_destination < 32_000
        wires.links.mend(wires.link)
        assert receive(ends.destination, len(words) - 100) == words[100:]


def test_reset(wires: Wires) -> None:
    talking, idle, other = wires.connect(), wires.connect(), wires.connect(wires.other)
    assert works(talking)
    wires.links.impose(wires.link, Reset())
    for end in (*talking, *idle):
        with pytest.raises(ConnectionResetError):
            end.recv(1)
    with pytest.raises(ConnectionResetError):
        wires.connect().source.recv(1)
    assert works(other)
    wires.links.mend(wires.link)
    assert works(wires.connect())


@pytest.mark.parametrize("death", ["close", "reset"])
def test_half_open(wires: Wires, death: str) -> None:
    ends, lives = wires.connect(), wires.connect()
    wires.links.impose(wires.link, HalfOpen())
    assert works(ends)
    ends.destination.sendall(b"last words")
    assert receive(ends.source, 10) == b"last words"
    if death == "reset":
        ends.destination.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    ends.destination.close()
    assert silent(ends.source)
    for _ in range(3):
        ends.source.sendall(b"anyone there?")
        assert silent(ends.source)
    assert works(lives)
    wires.links.mend(wires.link)
    assert _ended(ends.source)
    assert works(lives)


@pytest.mark.parametrize("condition", EVERY, ids=str)
def test_the_condition_is_known_to_whoever_attaches_and_any_other_replaces_it(
    wires: Wires, condition: Condition
) -> None:
    wires.links.impose(wires.link, condition)
    attached = Links.attached(json.loads(json.dumps(wires.links.described())))
    assert list(attached) == list(wires.links)
    assert attached.address(wires.link) == wires.links.address(wires.link)
    assert attached.condition(wires.link) == condition
    assert attached.conditions() == {wires.link: condition, wires.other: Open()}
    for other in EVERY:
        attached.impose(wires.link, other)
        assert wires.links.condition(wires.link) == other
        attached.impose(wires.link, condition)
    attached.mend(wires.link)
    assert wires.links.condition(wires.link) == Open()
    assert works(wires.connect())


@pytest.mark.parametrize("seed", range(3))
def test_no_change_of_condition_makes_a_hole_in_a_stream(wires: Wires, seed: int) -> None:
    draw = random.Random(seed)
    ends, words = wires.connect(), draw.randbytes(4_000_000)
    done = threading.Event()

    def quarrel() -> None:
        while not done.wait(draw.uniform(0, 0.05)):
            wires.links.impose(wires.link, draw.choice(LASTING))

    with ThreadPoolExecutor(5) as pool:
        disturbing = pool.submit(quarrel)
        sending = [pool.submit(end.sendall, words) for end in ends]
        receiving = [pool.submit(receive, end, len(words)) for end in ends]
        wait_until(
            lambda: wires.links.traffic()[wires.link].to_destination > 1_000_000, timeout_s=60, what="a quarter to pass"
        )
        done.set()
        disturbing.result()
        wires.links.mend(wires.link)
        assert [future.result() == words for future in receiving] == [True, True]
        for sent in sending:
            sent.result()


@pytest.mark.parametrize("condition", EVERY, ids=str)
def test_a_condition_does_not_wait_for_a_peer_that_has_stopped_reading(wires: Wires, condition: Condition) -> None:
    ends = wires.connect()
    ends.source.settimeout(0.5)
    with pytest.raises(TimeoutError):
        ends.source.sendall(bytes(50_000_000))
    wires.links.impose(wires.link, condition)  # the API has five seconds
    assert wires.links.condition(wires.link) == condition


def test_links_that_are_not_there(wires: Wires, server: ProxyServer) -> None:
    nowhere = Link(source="broker-1", destination="broker-9", listener=Listener.REPL)
    with pytest.raises(UsageError, match="there is no link broker-1 > broker-9 REPL in this cluster"):
        wires.links.impose(nowhere, Cut())
    strange = Links([Route(link=nowhere, server=server, listen=free_address(), upstream=free_address())])
    with pytest.raises(ClusterError, match="does not carry broker-1 > broker-9 REPL: was the cluster stopped"):
        strange.condition(nowhere)
    with pytest.raises(ClusterError, match=f"has {wires.link.name}, {wires.other.name} already"):
        wires.links.open()
    gone = free_address()
    lost = Links([Route(link=nowhere, server=ProxyServer(gone.host, gone.port), listen=gone, upstream=gone)])
    with pytest.raises(ClusterError, match="does not answer"):
        lost.traffic()


def test_an_address_that_is_taken_is_an_error(server: ProxyServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        link = Link(source="broker-7", destination="broker-8", listener=Listener.REPL)
        address = free_address()
        used = type(address)(host="127.0.0.1", port=taken.getsockname()[1])
        with pytest.raises(ClusterError, match="address already in use"):
            Links([Route(link=link, server=server, listen=used, upstream=address)]).open()


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (Open(), "open"),
        (Cut(), "cut"),
        (BlackHole(), "black-hole"),
        (OneWay(), "one-way"),
        (Delay(200, 50), "delayed by 200 ms +- 50"),
        (Delay(200), "delayed by 200 ms"),
        (Throttle(100), "throttled to 100 kB/s"),
        (Reset(), "reset"),
        (HalfOpen(), "half-open"),
    ],
)
def test_conditions_in_words(condition: Condition, words: str) -> None:
    assert str(condition) == words


@pytest.mark.parametrize("wrong", ["Delay(0)", "Delay(10**8)", "Delay(10, 11)", "Delay(1, 0, -1)", "Throttle(0)"])
def test_conditions_that_cannot_be(wrong: str) -> None:
    with pytest.raises(UsageError, match=r"^a "):
        eval(wrong)


def _counted(wires: Wires, expected: Traffic) -> None:
    """A byte is counted just after it is handed on, which may be just after it has arrived."""
    wait_until(
        lambda: wires.links.traffic()[wires.link] == expected, timeout_s=PATIENCE_S, what=f"{expected} to be counted"
    )


def _ordered(ends: Ends, first: str) -> tuple[socket.socket, socket.socket]:
    return (ends.source, ends.destination) if first == "source" else (ends.destination, ends.source)


def _ended(receiver: socket.socket) -> bool:
    try:
        return receiver.recv(1) == b""
    except ConnectionResetError:
        return True
