"""How long a cluster takes to serve: our way against the stock way, in turns."""

from __future__ import annotations

import dataclasses
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import msgspec

from lockstep.cluster.backends import distributions
from lockstep.cluster.cluster import PROPERTIES
from lockstep.cluster.distribution import Distribution
from lockstep.cluster.distribution.storage import STORAGE_TOOL
from lockstep.cluster.process import ProcessCluster
from lockstep.heal import owning
from lockstep.host.java import find_java
from lockstep.network.server_binary import toxiproxy_server
from lockstep.progress import Progress
from lockstep.spec.cluster import ClusterSpec

TOOL_TIMEOUT_S = 120


class StartBench(msgspec.Struct, frozen=True, kw_only=True):
    """What `lockstep bench start --json` prints; seconds are medians, from the first process to all brokers serving."""

    kafka: str
    mode: str
    brokers: int
    stock_s: float
    ours_s: float
    ratio: float
    stock_all_s: list[float]
    ours_all_s: list[float]
    memory_mb: dict[str, int | None]
    """Of each node of the last cluster started our way, when it served and had nothing to do."""


class StockCluster(ProcessCluster):
    """The same nodes with the same properties and JVM options, formatted by a storage tool each, without archives."""

    def format(self, name: str, cluster_id: str | None = None) -> None:
        node = self.spec.node(name)
        directory = self._directory_of(node)
        arguments = ["format", "-t", cluster_id or self.cluster_id, "-c", str(directory / PROPERTIES)]
        tool = self.distributions[node.kafka].tool(STORAGE_TOOL, *arguments, log_directory=directory)
        subprocess.run(tool, stdin=subprocess.DEVNULL, capture_output=True, timeout=TOOL_TIMEOUT_S, check=True)


def bench_start(spec: ClusterSpec, repeat: int, progress: Progress) -> StartBench:
    """Start the cluster `repeat` times each way, in turns, so that a noisy moment hits both."""
    kafkas = distributions(spec, find_java(), progress)
    toxiproxy = toxiproxy_server(progress)
    stock_s, ours_s = [], []
    memory: dict[str, int | None] = {}
    with tempfile.TemporaryDirectory(prefix="lockstep-bench-") as work:
        nothing = Path(work, "untrained")
        untrained = {version: _without_archives(kafka, nothing) for version, kafka in kafkas.items()}
        for turn in range(repeat):
            with progress.action(f"stock start {turn + 1} of {repeat}"):
                seconds, _ = _start(StockCluster, spec, untrained, toxiproxy, Path(work, f"stock-{turn}"))
                stock_s.append(seconds)
            with progress.action(f"our start {turn + 1} of {repeat}"):
                seconds, memory = _start(ProcessCluster, spec, kafkas, toxiproxy, Path(work, f"ours-{turn}"))
                ours_s.append(seconds)
    stock, ours = statistics.median(stock_s), statistics.median(ours_s)
    return StartBench(
        kafka=spec.kafka,
        mode=spec.mode,
        brokers=spec.brokers,
        stock_s=round(stock, 2),
        ours_s=round(ours, 2),
        ratio=round(stock / ours, 2),
        stock_all_s=[round(seconds, 2) for seconds in stock_s],
        ours_all_s=[round(seconds, 2) for seconds in ours_s],
        memory_mb=memory,
    )


def _start(
    kind: type[ProcessCluster],
    spec: ClusterSpec,
    distributions: dict[str, Distribution],
    toxiproxy: Path,
    directory: Path,
) -> tuple[float, dict[str, int | None]]:
    with (
        owning(directory) as ledger,
        kind(spec, directory, ledger, distributions=distributions, toxiproxy=toxiproxy) as cluster,
    ):
        began = time.perf_counter()
        cluster.start()
        seconds = time.perf_counter() - began
        return seconds, {node.name: node.memory_mb() for node in cluster.nodes.values()}


def _without_archives(kafka: Distribution, nothing: Path) -> Distribution:
    return dataclasses.replace(kafka, trained=nothing)
