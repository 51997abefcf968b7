"""Options and output that several commands share."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from harness.cluster.spec import DEFAULT_KAFKA, ClusterSpec, Mode
from harness.errors import UsageError
from harness.rundir import default_runs

F = TypeVar("F", bound=Callable[..., Any])

runs_dir = click.option(
    "--runs-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=default_runs,
    show_default="runs, or LOCKSTEP_RUNS",
    help="Where run directories are.",
)

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output, and nothing else there.")

scenario_dirs = click.option(
    "--scenarios",
    "scenario_dirs",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="A directory with scenario files of your own; may be given several times.",
)


def cluster_options(command: F) -> F:
    """The options that make a `ClusterSpec` and choose a backend."""
    for option in reversed(
        [
            click.option("--kafka", default=DEFAULT_KAFKA, show_default=True, help="Kafka version."),
            click.option(
                "--mode", type=click.Choice([mode.value for mode in Mode]), default=Mode.KRAFT.value, show_default=True,
                help="How the cluster keeps its metadata.",
            ),
            click.option("--brokers", type=int, default=3, show_default=True, help="How many brokers."),
            click.option("--controllers", type=int, default=1, show_default=True, help="How many KRaft controllers."),
            click.option(
                "--backend", type=click.Choice(["process", "docker"]), default="process", show_default=True,
                help="What runs the nodes.",
            ),
        ]
    ):  # fmt: skip
        command = option(command)
    return command


def spec_from(kafka: str, mode: str, brokers: int, controllers: int) -> ClusterSpec:
    """The spec that the options ask for; an unknown version is a usage error with the nearest known one."""
    from harness.cluster.distribution import read_lock

    read_lock(kafka)
    return ClusterSpec(kafka=kafka, mode=Mode(mode), brokers=brokers, controllers=controllers)


def seconds(text: str) -> float:
    """A duration such as 90, 90s, 10m or 1h."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", text.strip())
    if match is None or float(match[1]) <= 0:
        raise UsageError(f"{text!r} is not a duration: write 60s, 10m or 1h")
    return float(match[1]) * {"ms": 0.001, "s": 1, None: 1, "m": 60, "h": 3600}[match[2]]


def echo(line: object) -> None:
    """Print a line for whoever still reads: `lockstep run … | head` must not change how a run ends."""
    try:
        click.echo(line)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(value: object) -> None:
    echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
