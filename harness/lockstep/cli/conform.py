"""Conformance: claims about Kafka, each shown on a live cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lockstep.cli.options import Chosen, as_json, cluster_options, echo, print_table, runs_dir
from lockstep.cli.output import print_wrong_models, tell
from lockstep.errors import UsageError

if TYPE_CHECKING:
    from lockstep.stepper.conformance.suite import ConformanceVerdict


@click.command()
@cluster_options
@click.option("--claims", default="all", show_default=True, help="Numbers of claims, such as 12,19.")
@click.option("--controls", is_flag=True, help="Hold wrong models to the same scripts, too: each should diverge.")
@runs_dir
@as_json
def conform(chosen: Chosen, claims: str, controls: bool, runs_dir: Path, as_json: bool) -> int:
    """Show on a fresh cluster which claims about Kafka hold, with scripts that the model judges as well."""
    from lockstep.cluster.backends import Backend
    from lockstep.progress import Progress
    from lockstep.stepper.conformance.suite import conform as play

    if chosen.backend == "external":
        raise UsageError("scripts stop and cut off brokers: they need a cluster of their own, on process or docker")
    conformed = play(
        chosen.spec(),
        backend=Backend(chosen.backend),
        claims=_numbers(claims),
        runs=runs_dir,
        progress=Progress(quiet=as_json),
        hold_wrong_models=controls,
    )
    return tell(conformed, as_json, _in_words)


def _in_words(verdict: ConformanceVerdict) -> str:
    rows = [
        (str(claim.claim), claim.verdict, f"{claim.seconds:.1f} s", ", ".join(claim.scripts))
        for claim in verdict.claims
    ]
    print_table(("claim", "verdict", "time", "scripts"), rows)
    for claim in verdict.claims:
        if claim.evidence is not None:
            echo(f"claim {claim.claim}: {claim.evidence}")
    print_wrong_models(verdict.wrong_models, "scripts")
    return f", {len(verdict.scripts)} scripts in {verdict.seconds:.0f} s"


def _numbers(claims: str) -> tuple[int, ...]:
    from lockstep.stepper.conformance import shown_claims

    if claims == "all":
        return shown_claims()
    try:
        return tuple(sorted({int(number) for number in claims.split(",")}))
    except ValueError:
        raise UsageError(f"{claims!r} are not claims: write their numbers, such as 12,19, or all") from None


COMMANDS = (conform,)
