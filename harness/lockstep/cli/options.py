"""Options and output that several commands share."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import click
import msgspec

from lockstep.cluster.external_spec import ExternalSpec
from lockstep.errors import UsageError
from lockstep.rundir import default_runs
from lockstep.spec.cluster import DEFAULT_KAFKA, DEFAULT_ZK_KAFKA, ClusterSpec, Mechanism, Mode, Security

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The cluster that a command line asks for."""

    backend: str
    options: dict[str, Any]

    def spec(self, needs: Mapping[str, Any] | None = None) -> ClusterSpec:
        """What was asked for; where nothing was, what a scenario `needs`, else the default."""
        return spec_from(self.options, needs or {})

    def target(self, where: ExternalSpec | None, needs: Mapping[str, Any] | None = None) -> ClusterSpec | ExternalSpec:
        """The same for commands that also take a cluster that is there already."""
        if self.backend != "external":
            if where is not None:
                raise UsageError(
                    "--bootstrap-servers and --client-config lead to a cluster that is there already: "
                    "add --backend external"
                )
            return self.spec(needs)
        if any(self.options.values()):
            raise UsageError(
                "with --backend external the cluster is there already: leave out what describes one to start, such as "
                "--kafka, --mode or --brokers"
            )
        return where or ExternalSpec()


_CLUSTER_OPTIONS = (
    click.option("--kafka", help=f"Kafka version; {DEFAULT_KAFKA} by default, {DEFAULT_ZK_KAFKA} with --mode zk."),
    click.option(
        "--kafka-dir", type=click.Path(path_type=Path, file_okay=False), help="A local Kafka build, instead of --kafka."
    ),
    click.option(
        "--mode", type=click.Choice([mode.value for mode in Mode]),
        help="How the cluster keeps its metadata; kraft by default.",
    ),
    click.option("--brokers", type=int, help="How many brokers, 1 to 5; 3 by default."),
    click.option("--controllers", type=int, help="How many KRaft controllers; 1 by default with --mode kraft."),
    click.option("--zookeepers", type=int, help="How many ZooKeeper servers, 1 or 3; 1 by default."),
    click.option("--log-dirs", type=int, help="How many log directories each broker has, 1 to 4; 1 by default."),
    click.option("--rack", "racks", multiple=True, help="A rack; brokers are spread over all that are given."),
    click.option(
        "--set", "settings", multiple=True, metavar="[NODE:]NAME=VALUE",
        help="A property of every node, or of one, such as broker-1:num.io.threads=8.",
    ),
    click.option(
        "--node-kafka", "node_kafka", multiple=True, metavar="NODE=VERSION", help="A node that runs another version."
    ),
    click.option(
        "--feature", "features", multiple=True, metavar="NAME=LEVEL",
        help="A feature level to format with, such as eligible.leader.replicas.version=0.",
    ),
    click.option("--tls", is_flag=True, help="Encrypt all connections, with certificates made for the cluster."),
    click.option(
        "--sasl", type=click.Choice([mechanism.value for mechanism in Mechanism]),
        help="Authenticate clients and brokers with this SASL mechanism, and turn ACLs on.",
    ),
    click.option("--user", "users", multiple=True, help="With --sasl: a user without any right."),
    click.option(
        "--backend", type=click.Choice(["process", "docker", "external"]), default="process", show_default=True,
        help="What runs the nodes; external: the cluster runs already, outside Lockstep.",
    ),
)  # fmt: skip


def cluster_options(command: F) -> F:
    """The options that describe a cluster, handed to the command as one argument, `chosen`."""

    @functools.wraps(command)
    def with_chosen(*args: Any, **options: Any) -> Any:
        own = {name: options.pop(name) for name in _NAMES}
        return command(*args, chosen=Chosen(backend=own.pop("backend"), options=own), **options)

    decorated: Any = with_chosen
    for option in reversed(_CLUSTER_OPTIONS):
        decorated = option(decorated)
    return cast(F, decorated)


def external_options(command: F) -> F:
    """The options that lead to a cluster that is there already, handed to the command as one argument, `where`."""

    @functools.wraps(command)
    def with_where(*args: Any, bootstrap_servers: str | None, client_config: Path | None, **options: Any) -> Any:
        config = None if client_config is None else str(client_config.absolute())
        given = bootstrap_servers is not None or config is not None
        where = ExternalSpec(bootstrap_servers=bootstrap_servers, client_config=config) if given else None
        return command(*args, where=where, **options)

    servers = click.option(
        "--bootstrap-servers", metavar="HOST:PORT[,...]", help="The brokers of a cluster that Lockstep does not run."
    )
    config = click.option(
        "--client-config",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Client properties to get in with (TLS, SASL), as Kafka's own tools read them.",
    )
    decorated: Any = servers(config(with_where))
    return cast(F, decorated)


_NAMES = (
    "kafka", "kafka_dir", "mode", "brokers", "controllers", "zookeepers", "log_dirs", "racks", "settings",
    "node_kafka", "features", "tls", "sasl", "users", "backend",
)  # fmt: skip


def spec_from(options: Mapping[str, Any], needs: Mapping[str, Any]) -> ClusterSpec:
    """The spec that the options ask for; where they ask for nothing, what a scenario needs, else the default.

    An unknown version is a usage error with the nearest known one.
    """
    from lockstep.cluster.distribution import read_lock

    fields = dict(needs)
    for name, value in _asked(options).items():
        fields[name] = {**fields.get(name, {}), **value} if isinstance(value, dict) else value
    if options["kafka_dir"] is None:
        fields.pop("kafka_dir", None)
    spec = ClusterSpec.of(**fields)
    for version in spec.versions if spec.kafka_dir is None else spec.node_kafka.values():
        read_lock(version)
    return spec


def _asked(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, as fields of a spec."""
    overrides, node_overrides = _overrides(options["settings"])
    security = {name: options[name] for name in ("tls", "sasl", "users") if options[name]}
    fields = {
        **{name: options[name] for name in ("mode", "brokers", "controllers", "zookeepers", "log_dirs", "racks")},
        **_kafka(options["kafka"], options["kafka_dir"]),
        "overrides": overrides,
        "node_overrides": node_overrides,
        "node_kafka": dict(_pair(text, "--node-kafka", "NODE=VERSION") for text in options["node_kafka"]),
        "features": dict(_level(text) for text in options["features"]),
    }
    asked = {name: value for name, value in fields.items() if value not in (None, (), {})}
    return asked | ({"security": msgspec.convert(security, Security)} if security else {})


def _kafka(version: str | None, local: Path | None) -> dict[str, str]:
    from lockstep.cluster.distribution import version_in

    if local is None:
        return {} if version is None else {"kafka": version}
    if version is not None:
        raise UsageError("--kafka-dir says which Kafka it is: leave --kafka out")
    return {"kafka": version_in(local), "kafka_dir": str(local.absolute())}


def _overrides(settings: Sequence[str]) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    of_all: dict[str, str] = {}
    of_nodes: dict[str, dict[str, str]] = {}
    for text in settings:
        where, value = _pair(text, "--set", "NAME=VALUE or NODE:NAME=VALUE")
        node, _, name = where.rpartition(":")
        (of_nodes.setdefault(node, {}) if node else of_all)[name] = value
    return of_all, of_nodes


def _level(text: str) -> tuple[str, int]:
    name, level = _pair(text, "--feature", "NAME=LEVEL")
    if not level.isdigit():
        raise UsageError(f"--feature {text!r}: a level is a number, such as transaction.version=2")
    return name, int(level)


def _pair(text: str, option: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"{option} {text!r}: write {form}")
    return name, value


def seconds(text: str) -> float:
    """A duration such as 90, 90s, 10m or 1h."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", text.strip())
    if match is None or float(match[1]) <= 0:
        raise UsageError(f"{text!r} is not a duration: write 60s, 10m or 1h")
    return float(match[1]) * {"ms": 0.001, "s": 1, None: 1, "m": 60, "h": 3600}[match[2]]


def echo(line: object) -> None:
    """Print a line, and ignore a closed pipe: `lockstep run … | head` must not change how a run ends."""
    try:
        click.echo(line)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(value: object) -> None:
    echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns that line up, with nothing between them but space: for people, and for `awk`."""
    lines = [tuple(columns), *(tuple(map(str, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
