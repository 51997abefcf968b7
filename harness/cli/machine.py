"""Commands about this machine: what it can run, and what there is to run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from harness.cli.options import as_json, echo, print_json, runs_dir, scenario_dirs
from harness.errors import ExitCode


@click.command()
@click.option("--fix", is_flag=True, help="Fetch and build what is missing and needs no root.")
@runs_dir
@as_json
def doctor(fix: bool, runs_dir: Path, as_json: bool) -> int:
    """Tell what this machine can run, and the exact fix for what it cannot."""
    from harness import doctor as checks
    from harness.progress import Progress

    found = checks.fix(Progress(quiet=as_json), runs_dir) if fix else checks.diagnose(runs_dir)
    if as_json:
        print_json(found)
    else:
        for check in found:
            mark = "ok" if check.ok else ("MISSING" if check.required else "absent")
            echo(f"{mark:8} {check.name:18} {check.detail}")
            if not check.ok and check.fix:
                echo(f"{'':8} {'':18} fix: {check.fix}")
    return ExitCode.PASS if checks.healthy(found) else ExitCode.ENVIRONMENT


@click.command(name="list")
@click.argument("what", type=click.Choice(["scenarios", "faults", "guarantees", "versions"]), default="scenarios")
@scenario_dirs
@as_json
def list_(what: str, scenario_dirs: tuple[Path, ...], as_json: bool) -> None:
    """List scenarios (the default), faults, guarantees or Kafka versions."""
    rows = _LISTS[what](scenario_dirs)
    if as_json:
        print_json(rows)
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("summary")
    for row in rows:
        table.add_row(str(row["name"]), str(row["summary"]))
    console = Console(soft_wrap=True)
    with console.capture() as captured:
        console.print(table)
    echo(captured.get().rstrip("\n"))


def _scenarios(directories: tuple[Path, ...]) -> list[dict[str, object]]:
    from harness.scenario import find_scenarios

    return [{"name": s.name, "summary": s.summary} for s in find_scenarios(directories).values()]


def _faults(_: tuple[Path, ...]) -> list[dict[str, object]]:
    from harness.faults.fault import find_faults

    return [
        {
            "name": kind.name,
            "summary": kind.summary,
            "available": True,
            "reason": None,
            "targets": kind.targets,
            "backends": kind.backends,
        }
        for kind in find_faults().values()
    ]


def _guarantees(_: tuple[Path, ...]) -> list[dict[str, object]]:
    from reference_model.guarantees import GUARANTEES

    return [{"name": g.name, "summary": g.promise} for g in GUARANTEES]


def _versions(_: tuple[Path, ...]) -> list[dict[str, object]]:
    from harness.cluster.distribution import known_versions
    from harness.cluster.spec import DEFAULT_KAFKA

    return [
        {"name": version, "summary": "the default" if version == DEFAULT_KAFKA else "locked jars from Maven Central"}
        for version in known_versions()
    ]


_LISTS: dict[str, Callable[[tuple[Path, ...]], list[dict[str, object]]]] = {
    "scenarios": _scenarios,
    "faults": _faults,
    "guarantees": _guarantees,
    "versions": _versions,
}

COMMANDS = (doctor, list_)
