"""Stepping: the reference model and a live cluster, side by side."""

from __future__ import annotations

import random
from pathlib import Path

import click

from harness.cli.options import Chosen, as_json, cluster_options, echo, print_json, runs_dir
from harness.errors import ExitCode, UsageError

_EXIT = {"pass": ExitCode.PASS, "violation": ExitCode.VIOLATION, "undecided": ExitCode.UNDECIDED}


@click.command()
@cluster_options
@click.option("--seed", type=int, help="The seed of the walk; drawn and shown if not given.")
@click.option("--steps", type=click.IntRange(1, 100_000), default=200, show_default=True, help="How many steps.")
@click.option("--controls", is_flag=True, help="Hold wrong models to the same walk, too: each should diverge.")
@runs_dir
@as_json
def step(chosen: Chosen, seed: int | None, steps: int, controls: bool, runs_dir: Path, as_json: bool) -> int:
    """Walk at random with a fresh cluster and the model, until one does what the other does not permit."""
    from harness.cluster.backends import Backend
    from harness.lockstep.session import step as take_steps
    from harness.progress import Progress

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
    )
    verdict = stepped.verdict
    if as_json:
        print_json(verdict)
        return _EXIT[verdict.verdict]
    echo(f"steps      {verdict.steps} in {verdict.seconds:.1f} s, {verdict.quick_steps_per_second:.0f} a second")
    echo(f"           where nothing had to be waited for; {verdict.largest_belief} states explained it at most")
    if verdict.diverged is not None:
        echo(f"diverged   at step {verdict.diverged.step}: {verdict.diverged.words}")
        echo(f"seen       {verdict.diverged.seen}")
        for permitted in verdict.diverged.permitted:
            echo(f"permitted  {permitted}")
    for control in verdict.controls:
        after = "explained all" if control.diverged_after is None else f"diverged after {control.diverged_after}"
        echo(f"control    {control.name:<18} {after:<20} {control.says}")
    echo(f"verdict    {verdict.verdict.upper()}{f' ({verdict.reason})' if verdict.reason else ''}")
    echo(f"run        {stepped.directory}")
    return _EXIT[verdict.verdict]


COMMANDS = (step,)
