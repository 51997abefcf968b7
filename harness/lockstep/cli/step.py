"""Stepping: the reference model and a live cluster, side by side."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lockstep.cli.options import Chosen, as_json, cluster_options, echo, print_table, runs_dir
from lockstep.cli.output import print_wrong_models, tell
from lockstep.errors import UsageError

if TYPE_CHECKING:
    from lockstep.cluster.cluster import Cluster
    from lockstep.stepper.model.divergence import Divergence
    from lockstep.stepper.walk.seeds import WalksVerdict
    from lockstep.stepper.walk.session import Diverged, WalkVerdict

MOST_SEEDS = 1000


@click.command()
@cluster_options
@click.option("--seed", type=int, help="The seed of the walk; drawn and shown if not given.")
@click.option("--seeds", help="A walk with each of these, on one cluster, such as 1-10 or 3,5,8.")
@click.option("--steps", type=click.IntRange(1, 100_000), default=200, show_default=True, help="How many steps.")
@click.option("--controls", is_flag=True, help="Hold wrong models to the same walk, too: each should diverge.")
@click.option("--wrong-model", help="Follow with a wrong model, to see a divergence; --controls tries them all.")
@click.option("--shrink", is_flag=True, help="After a divergence, look for fewer steps that diverge; takes minutes.")
@click.option("--hold", is_flag=True, help="After a divergence, leave the cluster as it is until a key is pressed.")
@runs_dir
@as_json
def step(
    chosen: Chosen,
    seed: int | None,
    seeds: str | None,
    steps: int,
    controls: bool,
    wrong_model: str | None,
    shrink: bool,
    hold: bool,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Walk at random with a fresh cluster and the model, until one does what the other does not permit."""
    from lockstep.cluster.backends import Backend
    from lockstep.progress import Progress
    from lockstep.stepper.controls.wrong_models import wrong_model as find_wrong_model
    from lockstep.stepper.walk.seeds import WalkOptions, step_many
    from lockstep.stepper.walk.seeds import step as take_steps

    if chosen.backend == "external":
        raise UsageError("a walk stops and cuts off brokers: it needs a cluster of its own, on process or docker")
    if hold and not sys.stdin.isatty():
        raise UsageError("--hold waits for a key to be pressed: it needs a terminal")
    if seed is not None and seeds is not None:
        raise UsageError("--seed is for one walk and --seeds for many: give one of them")
    options = WalkOptions(
        steps=steps,
        controls=controls,
        wrong=None if wrong_model is None else find_wrong_model(wrong_model),
        shrink=shrink,
        hold=_hold if hold else None,
    )
    spec, backend, progress = chosen.spec(), Backend(chosen.backend), Progress(quiet=as_json)
    if seeds is not None:
        numbers = _numbers(seeds)
        many = step_many(spec, backend=backend, seeds=numbers, options=options, runs=runs_dir, progress=progress)
        return tell(many, as_json, _many_in_words)
    seed = random.SystemRandom().randrange(1, 1_000_000) if seed is None else seed
    one = take_steps(spec, backend=backend, seed=seed, options=options, runs=runs_dir, progress=progress)
    return tell(one, as_json, _in_words)


def _in_words(verdict: WalkVerdict) -> str:
    echo(f"steps      {verdict.steps} in {verdict.seconds:.1f} s, {verdict.quick_steps_per_second:.0f} a second")
    echo(f"           where nothing had to be waited for; {verdict.largest_belief} states explained it at most")
    if verdict.diverged is not None:
        _print_divergence(verdict.diverged)
    for control in verdict.controls:
        where = "explained all" if control.step is None else f"diverged at step {control.step}"
        echo(f"control    {control.name:<18} {where:<20} {control.says}")
    return f" ({verdict.reason})" if verdict.reason else ""


def _many_in_words(verdict: WalksVerdict) -> str:
    print_table(
        ("seed", "verdict", "steps", "time", "largest belief"),
        [
            (one.seed, one.walk.verdict, one.walk.steps, f"{one.walk.seconds:.1f} s", one.walk.largest_belief)
            for one in verdict.walks
        ],
    )
    for one in verdict.walks:
        if one.walk.diverged is not None:
            echo(f"seed       {one.seed}")
            _print_divergence(one.walk.diverged)
    print_wrong_models(verdict.wrong_models, "walks")
    return f", {verdict.steps} steps in {len(verdict.walks)} walks"


def _numbers(seeds: str) -> tuple[int, ...]:
    """`1-10` or `3,5,8`, each once, in order."""
    found: dict[int, None] = {}
    for part in seeds.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        numbers = range(int(match[1]), int(match[2] or match[1]) + 1) if match else range(0)
        if not 0 < len(numbers) <= MOST_SEEDS:
            raise UsageError(f"{seeds!r} are not seeds: write 1-10 or 3,5,8, at most {MOST_SEEDS} of them")
        found |= dict.fromkeys(numbers)
    return tuple(found)


def _hold(cluster: Cluster, divergence: Divergence) -> None:
    """Keep the diverged cluster running until the user, who may inspect it, presses a key."""
    click.echo(f"diverged   seen: {divergence.seen}; permitted: {', '.join(divergence.permitted)}", err=True)
    click.echo(f"held       the brokers listen at {cluster.bootstrap()}", err=True)
    click.echo("           press any key to heal the cluster and go on", err=True)
    click.pause("")


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
