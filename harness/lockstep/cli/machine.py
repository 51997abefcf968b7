"""Commands about this machine: what it can run, and what there is to run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lockstep.cli.options import as_json, echo, print_json, print_table, runs_dir, scenario_dirs
from lockstep.errors import ExitCode
from lockstep.spec.cluster import DEFAULT_KAFKA, Mode

if TYPE_CHECKING:
    from lockstep.cluster.distribution import Lock


@click.command()
@click.option("--fix", is_flag=True, help="Fetch and build what is missing and needs no root.")
@click.option("--kafka", default=DEFAULT_KAFKA, show_default=True, help="The Kafka version that is to be run.")
@runs_dir
@as_json
def doctor(fix: bool, kafka: str, runs_dir: Path, as_json: bool) -> int:
    """Tell what this machine can run, and the exact fix for what it cannot."""
    from lockstep import doctor as checks
    from lockstep.progress import Progress

    found = (
        checks.fix(Progress(quiet=as_json), runs_dir, kafka=kafka) if fix else checks.diagnose(runs_dir, kafka=kafka)
    )
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
@click.argument(
    "what",
    type=click.Choice(["scenarios", "faults", "guarantees", "versions", "variants", "bugs"]),
    default="scenarios",
)
@scenario_dirs
@as_json
def list_(what: str, scenario_dirs: tuple[Path, ...], as_json: bool) -> None:
    """List scenarios (the default), faults, guarantees, Kafka versions, variants of the model to explore, or bugs to
    plant in a simulated run.
    """
    rows = _LISTS[what](scenario_dirs)
    if as_json:
        print_json(rows)
        return
    print_table(("name", "summary"), [(row["name"], row["summary"]) for row in rows])


def _scenarios(directories: tuple[Path, ...]) -> list[dict[str, object]]:
    from lockstep.plan.scenario import find_scenarios

    return [{"name": s.name, "summary": s.summary} for s in find_scenarios(directories).values()]


def _faults(_: tuple[Path, ...]) -> list[dict[str, object]]:
    from lockstep.cluster.backends import Backend
    from lockstep.faults.fault import find_faults
    from lockstep.plan.targets import role
    from lockstep.spec.cluster import ClusterSpec

    return [
        {
            "name": kind.name,
            "summary": kind.summary,
            "available": (reason := kind.reason(ClusterSpec(), Backend.PROCESS)) is None,
            "reason": reason,
            "targets": [role(target) for target in kind.targets],
            "backends": kind.backends,
        }
        for kind in find_faults().values()
    ]


def _guarantees(_: tuple[Path, ...]) -> list[dict[str, object]]:
    from lockstep_model.guarantees import GUARANTEES

    return [{"name": g.name, "summary": g.promise} for g in GUARANTEES]


def _versions(_: tuple[Path, ...]) -> list[dict[str, object]]:
    from lockstep.cluster.distribution import known_versions, read_lock

    rows: list[dict[str, object]] = []
    for version in known_versions():
        modes = _modes(read_lock(version))
        default = " (the default version)" if version == DEFAULT_KAFKA else ""
        rows.append({"name": version, "summary": ", ".join(modes) + default, "modes": modes})
    return rows


def _modes(lock: Lock) -> list[Mode]:
    from lockstep.cluster.distribution import Program

    return [mode for mode in Mode if mode is not Mode.ZK or Program.ZK_BROKER in lock.programs]


def _variants(_: tuple[Path, ...]) -> list[dict[str, object]]:
    from lockstep.exploration.specifications import SPECIFICATIONS

    return [{"name": s.name, "summary": s.summary, "mutants": sorted(s.mutants)} for s in SPECIFICATIONS.values()]


def _bugs(_: tuple[Path, ...]) -> list[dict[str, object]]:
    from lockstep.simulation import bugs_in_words

    return bugs_in_words()


_LISTS: dict[str, Callable[[tuple[Path, ...]], list[dict[str, object]]]] = {
    "scenarios": _scenarios,
    "faults": _faults,
    "guarantees": _guarantees,
    "versions": _versions,
    "variants": _variants,
    "bugs": _bugs,
}


@click.group()
def versions() -> None:
    """The Kafka versions that can be run."""


@versions.command(name="add")
@click.argument("version")
@as_json
def versions_add(version: str, as_json: bool) -> None:
    """Make the lock file of a Kafka release: which jars it runs from, each with its hash."""
    from lockstep.cluster.distribution import lock_file, read_lock, write_lock
    from lockstep.cluster.distribution.resolver import lock
    from lockstep.progress import Progress

    known = lock_file(version)
    made = read_lock(version) if known else lock(version, Progress(quiet=as_json))
    path = known or write_lock(made)
    if as_json:
        found = {"kafka": version, "added": known is None, "lock": str(path), "jars": len(made.jars)}
        print_json(found | {"size_bytes": made.size, "modes": _modes(made)})
    else:
        echo(f"Kafka {version} {'is known already' if known else 'is added'}: {len(made.jars)} jars, lock file {path}")


COMMANDS = (doctor, list_, versions)
