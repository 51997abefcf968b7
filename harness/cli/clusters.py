"""Commands about clusters: keep one by hand, look at its logs, clean up after a crash."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.options import Chosen, as_json, cluster_options, echo, print_json, runs_dir
from harness.cluster.spec import DEFAULT_KAFKA
from harness.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from harness.heal import Healed


@click.command()
@click.option("--name", default="default", show_default=True, help="The cluster's name, for `down` and `logs`.")
@cluster_options
@as_json
def up(name: str, chosen: Chosen, as_json: bool) -> None:
    """Start a cluster and leave it running, for work by hand."""
    from harness.kept import keep
    from harness.progress import Progress

    kept = keep(name, chosen.spec, chosen.backend, Progress(quiet=as_json))
    if as_json:
        print_json(kept)
    else:
        echo(f"cluster {name} is up: bootstrap.servers={kept.bootstrap}")
        echo(f"stop it with: lockstep down --name {name}")


@click.command()
@click.option("--name", default="default", show_default=True, help="The cluster's name.")
@as_json
def down(name: str, as_json: bool) -> None:
    """Stop a cluster that `up` left running, and remove all of it."""
    from harness.kept import drop

    removed = drop(name)
    if as_json:
        print_json({"name": name, "removed": removed})
    else:
        echo(f"cluster {name} is down ({len(removed)} removed: {', '.join(removed) or 'nothing was running'})")


@click.command()
@as_json
def heal(as_json: bool) -> int:
    """Remove what a killed harness left behind: processes, proxies, containers, networks. Safe at any time."""
    from harness.heal import heal_all

    healed = heal_all()
    if as_json:
        print_json(
            [{"run": str(h.directory), "removed": h.removed, "failed": h.failed, "busy": h.busy} for h in healed]
        )
    else:
        for one in healed:
            echo(f"{one.directory}: {_in_words(one)}")
        if not healed:
            echo("nothing to heal")
    return ExitCode.ENVIRONMENT if any(one.failed for one in healed) else ExitCode.PASS


def _in_words(healed: Healed) -> str:
    if healed.busy:
        return "still going on, left alone"
    removed = f"removed {', '.join(healed.removed) or 'nothing, all was gone already'}"
    return f"{removed}; could not remove {'; '.join(healed.failed)}" if healed.failed else removed


@click.command()
@click.argument("node")
@click.option("--run", "run_name", help="A run directory; the latest run by default.")
@click.option("--name", "cluster", help="A cluster that `up` left running, instead of a run.")
@click.option("--lines", type=int, default=50, show_default=True, help="How many lines from the end; 0 means all.")
@runs_dir
def logs(node: str, run_name: str | None, cluster: str | None, lines: int, runs_dir: Path) -> None:
    """Print the end of a node's log, such as broker-1 or controller-100."""
    from harness.kept import kept_directory
    from harness.rundir import find_run
    from harness.scenario import suggestion

    if lines < 0:
        raise UsageError(f"--lines is 0 or more, not {lines}")
    directory = kept_directory(cluster) if cluster else find_run(run_name, runs_dir)
    known = sorted(path.name for path in directory.glob("nodes/*"))
    if node not in known:
        raise UsageError(f"{directory} has no node {node!r}{suggestion(node, known)}")
    files = [directory / "nodes" / node / name for name in ("server.log", "stdout.log")]
    log = next((file for file in files if file.exists() and file.stat().st_size), None)
    if log is None:
        raise UsageError(f"{node} has not written a log yet")
    with log.open(errors="replace") as text:
        for line in deque(text, lines or None):
            echo(line.rstrip("\n"))


@click.group()
def image() -> None:
    """The Kafka image of the docker backend."""


@image.command(name="build")
@click.option("--kafka", default=DEFAULT_KAFKA, show_default=True, help="Kafka version.")
@click.option("--base", help="A local image with a Java runtime to build on; found or made if not given.")
def image_build(kafka: str, base: str | None) -> None:
    """Build the image from the locked jars, for machines that cannot pull the official one."""
    from harness.cluster.distribution import read_lock
    from harness.cluster.docker import build_image
    from harness.progress import Progress

    read_lock(kafka)
    echo(build_image(kafka, Progress(), base))


COMMANDS = (up, down, heal, logs, image)
