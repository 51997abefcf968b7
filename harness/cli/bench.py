"""`lockstep bench`: speed as ratios, each measured side by side in one run."""

from __future__ import annotations

import click

from harness.cli.options import Chosen, as_json, cluster_options, echo, print_json
from harness.errors import UsageError


@click.group()
def bench() -> None:
    """Measure how fast Lockstep is, against the plain way of doing the same."""


@bench.command()
@cluster_options
@click.option("--repeat", type=int, default=3, show_default=True, help="How many starts each way; the median counts.")
@as_json
def start(chosen: Chosen, repeat: int, as_json: bool) -> None:
    """Start a cluster our way and the stock way (a StorageTool JVM per node, no class-data archive), in turns."""
    from harness.bench.start import bench_start
    from harness.progress import Progress

    if chosen.backend != "process":
        raise UsageError("bench start measures the process backend only")
    if repeat < 1:
        raise UsageError(f"--repeat is 1 or more, not {repeat}")
    result = bench_start(chosen.spec(), repeat, Progress(quiet=as_json))
    if as_json:
        print_json(result)
        return
    echo(f"stock  {result.stock_s:6.2f} s  {result.stock_all_s}")
    echo(f"ours   {result.ours_s:6.2f} s  {result.ours_all_s}")
    echo(f"ratio  {result.ratio:6.2f}    Kafka {result.kafka}, {result.mode}, {result.brokers} brokers")
    echo(f"memory {', '.join(f'{name} {size} MB' for name, size in result.memory_mb.items())}")


COMMANDS = (bench,)
