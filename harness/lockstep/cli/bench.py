"""`lockstep bench`: speed as ratios, each measured side by side in one run."""

from __future__ import annotations

import click

from lockstep.cli.model import bounds_options
from lockstep.cli.options import Chosen, as_json, cluster_options, echo, print_json
from lockstep.errors import UsageError


@click.group()
def bench() -> None:
    """Measure how fast Lockstep is, against the plain way of doing the same."""


@bench.command()
@cluster_options
@click.option("--repeat", type=int, default=3, show_default=True, help="How many starts each way; the median counts.")
@as_json
def start(chosen: Chosen, repeat: int, as_json: bool) -> None:
    """Start a cluster our way and the stock way (a StorageTool JVM per node, no class-data archive), in turns."""
    from lockstep.bench.start import bench_start
    from lockstep.progress import Progress

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


@bench.command()
@click.option("--variant", default="kip320", show_default=True, help="What to search: see `lockstep list variants`.")
@bounds_options
@click.option("--symmetry", is_flag=True, help="Count states that differ in the names of replicas only as one.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="How many processes search.")
@as_json
def explore(variant: str, bounds: dict[str, int], symmetry: bool, workers: int, as_json: bool) -> None:
    """Search a specification our way, and its beginning the plain way."""
    from lockstep.bench.explore import bench_explore
    from lockstep.exploration.specifications import chosen
    from lockstep.progress import Progress

    machine = chosen(variant, None, bounds)
    result = bench_explore(machine, workers=workers, symmetric=symmetry, progress=Progress(quiet=as_json))
    if as_json:
        print_json(result)
        return
    echo(f"plain  {result.plain_states_per_s:9,} states/s")
    ours = f"{result.states:,} states in {result.seconds} s, {result.cpu_seconds} s of them on a processor"
    echo(f"ours   {result.states_per_s:9,} states/s  {ours}")
    echo(f"ratio  {result.ratio:9.2f}")
    echo(f"memory {result.peak_memory_mb:9,} MB")


COMMANDS = (bench,)
