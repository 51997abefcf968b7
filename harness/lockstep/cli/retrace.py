"""Counterexamples of broken variants and mutants, replayed against real brokers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lockstep.cli.options import Chosen, as_json, cluster_options, echo, runs_dir
from lockstep.cli.output import tell
from lockstep.errors import UsageError
from lockstep.stepper.retrace.runner import Turn

if TYPE_CHECKING:
    from lockstep.stepper.retrace.suite import RetraceVerdict, TraceVerdict


@click.command()
@click.argument("names", nargs=-1, required=True)
@cluster_options
@click.option("--wrong-model", help="Follow with a wrong model, which takes the bad turn, to see a divergence.")
@runs_dir
@as_json
def retrace(chosen: Chosen, names: tuple[str, ...], wrong_model: str | None, runs_dir: Path, as_json: bool) -> int:
    """Lead a fresh cluster along the counterexamples of broken variants of Kafka, to see that it does not follow.

    NAMES are variants such as kip101, mutants such as kraft-4:maximal-isr (see `lockstep list variants`), or all.
    Exit code 0 if Kafka took no bad turn but those that are known and permitted, 1 if it took another, 2 if the
    situation could not be brought about.
    """
    from lockstep.cluster.backends import Backend
    from lockstep.progress import Progress
    from lockstep.stepper.controls.wrong_models import wrong_model as find_wrong_model
    from lockstep.stepper.retrace.suite import brokers_for
    from lockstep.stepper.retrace.suite import retrace as follow

    if chosen.backend == "external":
        raise UsageError("counterexamples stop and cut off brokers: they need a cluster of their own")
    retraced = follow(
        chosen.spec({"brokers": brokers_for(chosen.spec().mode)}),
        backend=Backend(chosen.backend),
        asked=names,
        runs=runs_dir,
        progress=Progress(quiet=as_json),
        wrong=None if wrong_model is None else find_wrong_model(wrong_model),
    )
    return tell(retraced, as_json, lambda verdict: _in_words(retraced.directory, verdict))


def _in_words(directory: Path, verdict: RetraceVerdict) -> str:
    from lockstep.stepper.retrace.suite import walk_of

    for trace in verdict.traces:
        _print(trace)
        echo(f"report     {walk_of(directory, trace.name) / 'report.html'}")
    for skipped in verdict.skipped:
        echo(f"skipped    {skipped.name}: {skipped.why}")
    for trace in verdict.traces:
        if trace.notice is not None:
            echo(f"notice     {trace.notice}")
    permitted = sum(trace.turn is Turn.PERMITTED for trace in verdict.traces)
    known = f", {permitted} of them with a bad turn that is permitted" if permitted else ""
    return f", {len(verdict.traces)} counterexamples in {verdict.seconds:.0f} s{known}"


def _print(trace: TraceVerdict) -> None:
    roles = ", ".join(f"{number} is {id_}" for number, id_ in enumerate(trace.brokers))
    echo(f"trace      {trace.name}, which breaks {trace.breaks}; of its brokers {roles}")
    width = max((len(one.action) for one in trace.actions), default=0)
    for one in trace.actions:
        echo(f"  {one.position:3}. {one.action:{width}}  {one.outcome}: {one.seen}")
    echo(f"bad turn   {trace.turn}{f' ({trace.evidence})' if trace.evidence else ''}")
    if trace.turn is Turn.PERMITTED:
        echo(f"known      {trace.finding}")
    if not trace.seen:
        echo(f"           {trace.breaks} cannot be seen on a live cluster: only what the controller grants can")
    if trace.lacks is not None:
        echo(f"control    a model without {trace.lacks}: {trace.broken_model}")


COMMANDS = (retrace,)
