"""Commands about clusters: keep one by hand, look at its logs, clean up after a crash."""

from __future__ import annotations

import functools
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from lockstep.cli.options import Chosen, F, as_json, cluster_options, echo, print_json, print_table, runs_dir
from lockstep.errors import ExitCode, UsageError
from lockstep.spec.cluster import DEFAULT_KAFKA

if TYPE_CHECKING:
    from lockstep.heal import Healed
    from lockstep.status import NodeStatus, PartitionStatus


@click.command()
@click.option("--name", default="default", show_default=True, help="The cluster's name, for `down` and `logs`.")
@cluster_options
@as_json
def up(name: str, chosen: Chosen, as_json: bool) -> None:
    """Start a cluster and leave it running, for work by hand."""
    from lockstep.named import keep
    from lockstep.progress import Progress

    kept = keep(name, chosen.spec(), chosen.backend, Progress(quiet=as_json))
    if as_json:
        print_json(kept)
    else:
        echo(f"cluster {name} is up: bootstrap.servers={kept.bootstrap}")
        if kept.client_config:
            echo(f"client properties, with the password: {kept.client_config}")
        echo(f"stop it with: lockstep down --name {name}")


@click.command()
@click.option("--name", default="default", show_default=True, help="The cluster's name.")
@as_json
def down(name: str, as_json: bool) -> None:
    """Stop a cluster that `up` left running, and remove all of it."""
    from lockstep.named import drop

    removed = drop(name)
    if as_json:
        print_json({"name": name, "removed": removed})
    else:
        echo(f"cluster {name} is down ({len(removed)} removed: {', '.join(removed) or 'nothing was running'})")


def looked_at(command: F) -> F:
    """The options that name a cluster to look at, handed to the command as `directory`."""

    @functools.wraps(command)
    def with_directory(*args: Any, name: str | None, run_name: str | None, runs_dir: Path, **options: Any) -> Any:
        return command(*args, directory=_cluster_directory(name, run_name, runs_dir), **options)

    decorated: Any = runs_dir(with_directory)
    decorated = click.option("--run", "run_name", help="The cluster of a run that is going on, instead.")(decorated)
    option = click.option("--name", help="A cluster that `up` left running; by default the one called default.")
    return cast(F, option(decorated))


def _cluster_directory(name: str | None, run_name: str | None, runs: Path) -> Path:
    from lockstep.named import kept_directory
    from lockstep.rundir import find_run

    if run_name is None:
        return kept_directory(name or "default")
    if name is not None:
        raise UsageError("give --name or --run, not both")
    return find_run(run_name, runs)


@click.command()
@looked_at
@as_json
def status(directory: Path, as_json: bool) -> None:
    """Show a cluster: nodes with memory, controller, leaders and ISRs, broken links, active faults."""
    from lockstep.status import status as look

    now = look(directory)
    if as_json:
        print_json(now)
        return
    echo(f"Kafka {now.kafka}, {now.mode}, {now.backend}: bootstrap.servers={now.bootstrap}")
    print_table(("node", "state", "kafka", "rack", "memory", "identity", "address"), map(_node_row, now.nodes))
    echo(f"controller: {'none known' if now.controller is None else now.controller}")
    if now.partitions:
        print_table(("partition", "leader", "epoch", "isr", "replicas"), map(_partition_row, now.partitions))
    broken = [f"{link.source} > {link.destination} {link.listener} {link.condition}" for link in now.links_broken]
    echo(f"links: {now.links}, {', '.join(broken) or 'all open'}")
    echo(f"faults: {'; '.join(now.faults) or 'none'}")


def _node_row(node: NodeStatus) -> tuple[object, ...]:
    memory = "" if node.memory_mb is None else f"{node.memory_mb} MB"
    return (node.name, node.state, node.kafka, node.rack or "", memory, node.identity, node.address)


def _partition_row(partition: PartitionStatus) -> tuple[object, ...]:
    isr, replicas = (",".join(map(str, ids)) for ids in (partition.isr, partition.replicas))
    return (f"{partition.topic}-{partition.partition}", partition.leader, partition.leader_epoch, isr, replicas)


@click.command()
@looked_at
@as_json
def links(directory: Path, as_json: bool) -> None:
    """Show every link of a cluster: its condition, and the bytes it has carried each way."""
    from lockstep.cluster.description import read_description
    from lockstep.status import link_statuses

    found = link_statuses(read_description(directory))
    if as_json:
        print_json(found)
        return
    rows = [
        (link.source, link.destination, link.listener, link.condition, link.to_destination_bytes, link.to_source_bytes)
        for link in found
    ]
    print_table(("source", "destination", "listener", "condition", "bytes there", "bytes back"), rows)


@click.command()
@click.option(
    "--forget", is_flag=True, help="Give up resources that cannot be removed, such as topics of a cluster that is gone."
)
@as_json
def heal(forget: bool, as_json: bool) -> int:
    """Remove what a killed harness left behind. Safe at any time.

    That is: processes, proxies, containers, networks, secrets, what faults did to files, and topics on external
    clusters.
    """
    from lockstep.heal import heal_all

    healed = heal_all(forget=forget)
    if as_json:
        print_json([_outcome(one) for one in healed])
    else:
        for one in healed:
            echo(f"{one.directory}: {_in_words(one)}")
        if not healed:
            echo("nothing to heal")
    return ExitCode.ENVIRONMENT if any(one.failed for one in healed) else ExitCode.PASS


def _outcome(healed: Healed) -> dict[str, object]:
    return {
        "run": str(healed.directory),
        "removed": healed.removed,
        "failed": healed.failed,
        "forgotten": healed.forgotten,
        "busy": healed.busy,
    }


def _in_words(healed: Healed) -> str:
    if healed.busy:
        return "still going on, left alone"
    if healed.failed:
        instead = "see to it and heal again, or give it up with lockstep heal --forget"
        return (
            f"removed {', '.join(healed.removed) or 'nothing'}; could not remove {'; '.join(healed.failed)}: {instead}"
        )
    if healed.forgotten:
        left = f"forgot, and may have left, {'; '.join(healed.forgotten)}"
        return f"removed {', '.join(healed.removed) or 'nothing'}; {left}"
    return f"removed {', '.join(healed.removed) or 'nothing, all was gone already'}"


@click.command()
@click.argument("node")
@click.option("--run", "run_name", help="A run directory; the latest run by default.")
@click.option("--name", "cluster", help="A cluster that `up` left running, instead of a run.")
@click.option("--lines", type=int, default=50, show_default=True, help="How many lines from the end; 0 means all.")
@runs_dir
def logs(node: str, run_name: str | None, cluster: str | None, lines: int, runs_dir: Path) -> None:
    """Print the end of a node's log, such as broker-1 or controller-100."""
    from lockstep.named import kept_directory
    from lockstep.names import suggestion
    from lockstep.node_logs import node_log, node_names
    from lockstep.rundir import find_run

    if lines < 0:
        raise UsageError(f"--lines is 0 or more, not {lines}")
    directory = kept_directory(cluster) if cluster else find_run(run_name, runs_dir)
    known = node_names(directory)
    if node not in known:
        raise UsageError(f"{directory} has no node {node!r}{suggestion(node, known)}")
    log = node_log(directory, node)
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
    from lockstep.cluster.distribution import read_lock
    from lockstep.cluster.docker import build_image
    from lockstep.progress import Progress

    read_lock(kafka)
    echo(build_image(kafka, Progress(), base))


COMMANDS = (up, down, status, links, heal, logs, image)
