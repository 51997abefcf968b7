"""How fast the proxy carries Kafka's frames: the stock Toxiproxy, ours, and ours while rules look for other frames.

python benchmarks/proxy.py [--json]

One connection sends Produce requests of 16 KB without acknowledgement to a sink that only reads. What counts is MB per
second of the proxy's own processor time: the sender and the sink take theirs on the same cores.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lockstep.network.conditions import Condition, Frames, Open
from lockstep.network.frames import Hold, Side
from lockstep.network.server_binary import BUILD_OPTIONS, BUILD_SETTINGS, MODULE, find_go, toxiproxy_server
from lockstep.network.topology import Address, Link
from lockstep.network.toxiproxy import Proxy, ProxyServer
from lockstep.progress import Progress
from lockstep.spec.cluster import Listener
from lockstep.wait import wait_until

STOCK = "github.com/Shopify/toxiproxy/v2/cmd/server"
MEGABYTES, ROUNDS = 1000, 3
LINK = Link(source="clients", destination="broker-1", listener=Listener.CLIENT)
RULES = Frames((Hold(apis=("EndTxn", "Fetch"), side=Side.REQUEST, client_id="nobody"),))


def produce_frame(size: int) -> bytes:
    """A Produce request, version 7: header, no transactional id, acks=0, one partition."""
    header = struct.pack(">hhih", 0, 7, 1, 5) + b"bench"
    body = struct.pack(">hhiih", -1, 0, 1000, 1, 1) + b"t" + struct.pack(">iii", 1, 0, size) + bytes(size)
    return struct.pack(">i", len(header) + len(body)) + header + body


@contextmanager
def running(binary: Path) -> Iterator[tuple[int, ProxyServer]]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with subprocess.Popen([binary, "-host", "127.0.0.1", "-port", str(port)], stdout=subprocess.DEVNULL) as process:
        try:
            server = ProxyServer("127.0.0.1", port)
            wait_until(server.answers, timeout_s=20, what="the proxy server to answer")
            yield process.pid, server
        finally:
            process.kill()


def carried(binary: Path, condition: Condition) -> tuple[float, float]:
    """MB per second, and per second of the proxy's processor time."""
    with running(binary) as (pid, server), socket.create_server(("127.0.0.1", 0)) as sink:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            listen = Address(host="127.0.0.1", port=probe.getsockname()[1])
        upstream = Address(host="127.0.0.1", port=sink.getsockname()[1])
        server.create([Proxy(name=LINK.name, listen=str(listen), upstream=str(upstream))])
        if condition != Open():
            server.impose(LINK.name, condition)
        frames = produce_frame(16_000) * 64
        count = MEGABYTES * 1_000_000 // len(frames)
        with socket.create_connection((listen.host, listen.port)) as source:
            accepted, _ = sink.accept()
            before, began = processor_s(pid), time.perf_counter()
            sending = threading.Thread(target=send, args=(source, frames, count))
            sending.start()
            buffer, left = bytearray(1 << 20), count * len(frames)
            while left > 0:
                left -= accepted.recv_into(buffer)
            seconds, processor = time.perf_counter() - began, processor_s(pid) - before
            sending.join()
            accepted.close()
    return MEGABYTES / seconds, MEGABYTES / processor


def send(source: socket.socket, frames: bytes, count: int) -> None:
    for _ in range(count):
        source.sendall(frames)


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def build_stock(place: Path) -> Path:
    go = find_go()
    assert go is not None, "the stock server is built from its sources: install Go"
    command = [str(go), "build", *BUILD_OPTIONS, "-o", str(place), STOCK]
    subprocess.run(command, cwd=MODULE, env={**os.environ, **BUILD_SETTINGS}, check=True)
    return place


def main() -> None:
    ours = toxiproxy_server(Progress(quiet=True))
    with tempfile.TemporaryDirectory() as work:
        stock = build_stock(Path(work, "stock"))
        ways: dict[str, tuple[Path, Condition]] = {
            "stock": (stock, Open()),
            "open": (ours, Open()),
            "rules": (ours, RULES),
        }
        measured: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, (binary, condition) in ways.items():
                measured[name].append(carried(binary, condition))
    medians = {
        name: {
            "mb_per_s": round(statistics.median(wall for wall, _ in rounds)),
            "mb_per_processor_s": round(statistics.median(processor for _, processor in rounds)),
        }
        for name, rounds in measured.items()
    }
    if "--json" in sys.argv:
        print(json.dumps(medians))
        return
    for name, figures in medians.items():
        print(f"{name:6} {figures['mb_per_s']:5} MB/s   {figures['mb_per_processor_s']:5} MB per processor second")


if __name__ == "__main__":
    main()
