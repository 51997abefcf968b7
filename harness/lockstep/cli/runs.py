"""Commands about runs: make one, do one again, judge and report what was recorded."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lockstep.cli.options import (
    Chosen,
    as_json,
    cluster_options,
    echo,
    external_options,
    print_json,
    runs_dir,
    scenario_dirs,
    seconds,
)
from lockstep.cli.output import EXIT
from lockstep.cluster.external_spec import ExternalSpec
from lockstep.errors import ExitCode, HistoryError, UsageError
from lockstep.spec.cluster import ClusterSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lockstep.checker import Verdict
    from lockstep.plan.plan import Plan

SMALL_BYTES = 100_000_000
"""Up to this size, some millions of records, a quick Spark is done before a thorough one has warmed up."""


@click.command()
@click.argument("scenario")
@cluster_options
@external_options
@click.option("--seed", type=int, help="The seed of the plan and of every client; drawn and shown if not given.")
@click.option(
    "--for", "duration", help="How long the clients work in all, such as 60s; the plan's own length if not given."
)
@click.option("--beyond", is_flag=True, help="Also draw faults that no guarantee survives, such as unclean elections.")
@click.option("--dry-run", is_flag=True, help="Only print the plan: faults, targets, times; with --json, as plan.json.")
@scenario_dirs
@runs_dir
@as_json
def run(
    scenario: str,
    chosen: Chosen,
    where: ExternalSpec | None,
    seed: int | None,
    duration: str | None,
    beyond: bool,
    dry_run: bool,
    scenario_dirs: tuple[Path, ...],
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Run a scenario on a fresh cluster (or yours, with --backend external), judge what happened, write a report."""
    from lockstep.plan.scenario import get_scenario

    found = get_scenario(scenario, scenario_dirs)
    seed = random.SystemRandom().randrange(1, 1_000_000) if seed is None else seed
    cluster = chosen.target(where, found.cluster)
    plan = found.plan(
        seed,
        spec=cluster if isinstance(cluster, ClusterSpec) else None,
        backend=chosen.backend,
        seconds=seconds(duration) if duration else None,
        beyond=beyond,
    )
    if dry_run:
        return _tell(plan, cluster, chosen.backend, as_json)
    return _carry_out(plan, cluster, chosen.backend, runs_dir, as_json)


def _tell(plan: Plan, cluster: ClusterSpec | ExternalSpec, backend: str, as_json: bool) -> int:
    """What a plan would do, checked as before a run."""
    from lockstep.cluster.backends import Backend
    from lockstep.validation import require_fit

    require_fit(plan, cluster, Backend(backend))
    if as_json:
        print_json(plan)
        return ExitCode.PASS
    where = cluster.in_words() if isinstance(cluster, ClusterSpec) else "a cluster of yours"
    echo(f"{plan.scenario}, seed {plan.seed}: {where}, {backend}")
    for topic in plan.topics:
        echo(f"topic      {topic}")
    for workload in plan.workloads:
        echo(f"clients    {workload}")
    for at_s, step in plan.timeline():
        echo(f"{at_s:7.1f} s  {step.step}. {step}")
    for expectation in plan.expectations:
        echo(f"expected   {expectation}")
    return ExitCode.PASS


@click.command()
@click.argument("run", required=False)
@external_options
@runs_dir
@as_json
def replay(run: str | None, where: ExternalSpec | None, runs_dir: Path, as_json: bool) -> int:
    """Carry out the stored plan of a run again, on a cluster of the same spec (RUN defaults to the latest)."""
    from lockstep.cluster.external import with_planned_topics
    from lockstep.plan.plan import read_plan
    from lockstep.rundir import find_run, read_run_info

    directory = find_run(run, runs_dir)
    info = read_run_info(directory)
    _refuse_walk(directory)
    plan, spec = read_plan(directory), info.cluster
    if isinstance(spec, ClusterSpec):
        if where is not None:
            raise UsageError(
                f"{info.run} had a cluster of its own, and so has its replay: leave out --bootstrap-servers and "
                "--client-config"
            )
        return _carry_out(plan, spec, info.backend, runs_dir, as_json)
    if where is None:
        raise UsageError(f"{info.run} ran on a cluster that is not ours: say where to, as in {info.replay}")
    plan = with_planned_topics(plan, info.run)
    return _carry_out(plan, where, info.backend, runs_dir, as_json)


@click.command()
@click.argument("runs", nargs=-1)
@runs_dir
@as_json
def check(runs: tuple[str, ...], runs_dir: Path, as_json: bool) -> int:
    """Judge recorded runs again (the latest by default), all in one job."""
    from lockstep.checker import judge, spark_session
    from lockstep.progress import Progress
    from lockstep.rundir import find_run

    directories = [find_run(name, runs_dir) for name in runs or (None,)]
    for directory in directories:
        _refuse_walk(directory)
    readable, unreadable = _readable(directories)
    verdicts: list[Verdict] = []
    if readable:
        in_words = "1 run" if len(readable) == 1 else f"{len(readable)} runs"
        with Progress(quiet=as_json).action(f"judging {in_words}"), spark_session(quick=_small(readable)) as spark:
            verdicts = judge(readable, spark)
    if as_json:
        print_json(verdicts[0] if len(directories) == len(verdicts) == 1 else verdicts)
    else:
        for directory, verdict in zip(readable, verdicts, strict=True):
            _print_verdict(directory, verdict)
    for error in unreadable:
        click.echo(f"lockstep: {error}", err=True)
    return _exit_code(verdicts, failed=bool(unreadable))


def _refuse_walk(directory: Path) -> None:
    """A walk is judged while it is taken: it has neither a plan nor a history."""
    from lockstep.rundir import read_run_info
    from lockstep_reports import is_stepped

    if is_stepped(directory):
        again = read_run_info(directory).replay
        raise UsageError(
            f"{directory.name} is a walk, without a plan and without a history: its verdict is in its report.html, and "
            f"`{again}` takes it again"
        )


def _small(directories: Sequence[Path]) -> bool:
    sizes = (file.stat().st_size for directory in directories for file in directory.glob("history/*"))
    return sum(sizes) < SMALL_BYTES


def _readable(directories: Sequence[Path]) -> tuple[list[Path], list[HistoryError]]:
    """Which histories can be judged; a damaged one among many must not keep the others from their verdicts."""
    from lockstep.history.store import open_history

    readable, errors = [], []
    for directory in directories:
        try:
            with open_history(directory):
                readable.append(directory)
        except HistoryError as error:
            errors.append(error)
    return readable, errors


@click.command()
@click.argument("run", required=False)
@runs_dir
def report(run: str | None, runs_dir: Path) -> None:
    """Write the report of a run or walk again; of a run junit.xml and summary.md, too (RUN defaults to the latest)."""
    from lockstep.rundir import find_run
    from lockstep_reports import write_all

    for path in write_all(find_run(run, runs_dir)):
        echo(path)


def _carry_out(plan: Plan, spec: ClusterSpec | ExternalSpec, backend: str, runs: Path, as_json: bool) -> int:
    from lockstep.checker import SparkStarter
    from lockstep.cluster.backends import Backend
    from lockstep.progress import Progress
    from lockstep.run import run as carry_out
    from lockstep.rundir import read_run_info, replay_command
    from lockstep_reports import write_all

    progress = Progress(quiet=as_json)
    with SparkStarter() as spark:
        finished = carry_out(plan, spec=spec, backend=Backend(backend), runs=runs, progress=progress, spark=spark)
    report_path, *_ = write_all(finished.directory)
    if as_json:
        print_json(finished.verdict)
    else:
        _print_story(plan, finished.directory)
        if isinstance(spec, ExternalSpec):
            echo("watched    leaders and ISRs, not nodes: what happens to those of an external cluster is not seen")
        _print_verdict(finished.directory, finished.verdict)
        echo(f"report     {report_path}")
        echo(f"replay     {replay_command(finished.directory, read_run_info(finished.directory).cluster)}")
    return _exit_code([finished.verdict])


def _print_story(plan: Plan, directory: Path) -> None:
    """What was done to the cluster, with the proof, from the ledger."""
    from lockstep.recovery.ledger import LEDGER, read_ledger
    from lockstep_reports.story import detail as in_words

    echo(f"seed       {plan.seed}")
    echo(f"plan       {'; '.join(plan.in_words())}")
    for entry in read_ledger(directory / LEDGER):
        fields = entry.fields
        if entry.kind == "topic":
            echo(f"topic      {fields['name']} ({'left there as evidence' if fields.get('kept') else 'deleted again'})")
            for missing in fields.get("not_in_sync", ()):
                echo(f"  in the end {missing}")
        if entry.kind == "fault":
            echo(f"fault      {fields['fault']} of {fields['target_resolved']} ({fields['target_asked']})")
            for phase in ("proof", "healed"):
                echo(f"  {phase:8} {in_words((entry.phase(phase) or {}).get('detail', {}))}")


def _print_verdict(directory: Path, verdict: Verdict) -> None:
    counts = verdict.counts
    echo(f"run        {directory}")
    echo(
        f"writes     {counts['acknowledged']} acknowledged, {counts['unknown']} unknown, {counts['failed']} failed; "
        f"{counts['read']} records read"
    )
    for guarantee in verdict.guarantees:
        echo(f"{guarantee.status:14} {guarantee.name:22} {guarantee.reason}")
    for expectation in verdict.expectations:
        outcome = "and it is" if expectation.met else "AND IT IS NOT"
        echo(f"expected       {expectation.guarantee} {expectation.status}, {outcome}")
    for anomaly in verdict.anomalies[:5]:
        echo(f"  {anomaly.text}" + (f" (during {anomaly.fault})" if anomaly.fault else ""))
    if len(verdict.anomalies) > 5:
        echo(f"  ... and {sum(g.count for g in verdict.guarantees) - 5} more, in the report")
    echo(f"verdict    {verdict.verdict.upper()}" + (f" ({verdict.reason})" if verdict.reason else ""))


def _exit_code(verdicts: Sequence[Verdict], *, failed: bool = False) -> ExitCode:
    """Over several runs: a violation counts before a failure, that before undecided, that before a pass."""
    codes = {EXIT[verdict.verdict] for verdict in verdicts} | ({ExitCode.ENVIRONMENT} if failed else set())
    order = (ExitCode.VIOLATION, ExitCode.ENVIRONMENT, ExitCode.UNDECIDED, ExitCode.PASS)
    return next(code for code in order if code in codes)


COMMANDS = (run, replay, check, report)
