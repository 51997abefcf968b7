"""Stepping: the reference model and a live cluster, side by side."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.options import Chosen, as_json, cluster_options, echo, print_json, runs_dir
from harness.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from harness.lockstep.session import Diverged

_EXIT = {"pass": ExitCode.PASS, "violation": ExitCode.VIOLATION, "undecided": ExitCode.UNDECIDED}


@click.command()
@cluster_options
@click.option("--seed", type=int, help="The seed of the walk; drawn and shown if not given.")
@click.option("--steps", type=click.IntRange(1, 100_000), default=200, show_default=True, help="How many steps.")
@click.option("--controls", is_flag=True, help="Hold wrong models to the same walk, too: each should diverge.")
@click.option("--wrong-model", help="Follow with a wrong model, to see a divergence; --controls tries them all.")
@click.option("--shrink", is_flag=True, help="After a divergence, look for fewer steps that diverge; takes minutes.")
@runs_dir
@as_json
def step(
    chosen: Chosen,
    seed: int | None,
    steps: int,
    controls: bool,
    wrong_model: str | None,
    shrink: bool,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Walk at random with a fresh cluster and the model, until one does what the other does not permit."""
    from harness.cluster.backends import Backend
    from harness.lockstep.session import step as take_steps
    from harness.lockstep.wrong_models import wrong_model as find_wrong_model
    from harness.progress import Progress
    from reports import render_walk

    if chosen.backend == "external":
        raise UsageError("a walk stops and cuts off brokers: it needs a cluster of its own, on process or docker")
    seed = random.SystemRandom().randrange(1, 1_000_000) if seed is None else seed
    stepped = take_steps(
        chosen.spec(),
        backend=Backend(chosen.backend),
        seed=seed,
        steps=steps,
        runs=runs_dir,
        progress=Progress(quiet=as_json),
        controls=controls,
        wrong=None if wrong_model is None else find_wrong_model(wrong_model),
        shrink=shrink,
    )
    report = render_walk(stepped.directory)
    verdict = stepped.verdict
    if as_json:
        print_json(verdict)
        return _EXIT[verdict.verdict]
    echo(f"steps      {verdict.steps} in {verdict.seconds:.1f} s, {verdict.quick_steps_per_second:.0f} a second")
    echo(f"           where nothing had to be waited for; {verdict.largest_belief} states explained it at most")
    if verdict.diverged is not None:
        _print_divergence(verdict.diverged)
    for control in verdict.controls:
        where = "explained all" if control.step is None else f"diverged at step {control.step}"
        echo(f"control    {control.name:<18} {where:<20} {control.says}")
    echo(f"verdict    {verdict.verdict.upper()}{f' ({verdict.reason})' if verdict.reason else ''}")
    echo(f"run        {stepped.directory}")
    echo(f"report     {report}")
    return _EXIT[verdict.verdict]


def _print_divergence(diverged: Diverged) -> None:
    echo(f"diverged   at step {diverged.step}: {diverged.words}")
    echo(f"seen       {diverged.seen}")
    for permitted in diverged.permitted:
        echo(f"permitted  {permitted}")
    for believed in diverged.belief:
        for way in believed.ways:
            some = f" (in {way.states} of {diverged.states} states)" if way.states < diverged.states else ""
            echo(f"believed   {believed.part}: {way.words}{some}")
    for number, step in enumerate(diverged.shrunk or (), start=1):
        echo(f"enough     {number}. {step}")


COMMANDS = (step,)
