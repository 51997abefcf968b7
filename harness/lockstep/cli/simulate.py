"""`lockstep simulate`: histories from the reference model, with a bug if one is asked for."""

from __future__ import annotations

import time
from pathlib import Path

import click

from lockstep.cli.options import as_json, echo, print_json, print_table, runs_dir


@click.command()
@click.option("--seed", type=int, default=0, show_default=True, help="What everything is drawn from.")
@click.option("--ops", type=int, default=100_000, show_default=True, help="How many operations clients do.")
@click.option("--partitions", type=int, default=3, show_default=True, help="How many partitions the topic has.")
@click.option("--bug", metavar="NAME", help="Plant this bug: see `lockstep list bugs`, or --bug help.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="The run directory to make; by default one in --runs-dir that is named after the run.",
)
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="How many processes write.")
@runs_dir
@as_json
def simulate(
    seed: int,
    ops: int,
    partitions: int,
    bug: str | None,
    out: Path | None,
    workers: int,
    runs_dir: Path,
    as_json: bool,
) -> None:
    """Make the history of a run that never was: correct, or with exactly one bug, which planted.json describes.

    The same options give the same bytes. No cluster is started. `lockstep check` judges the result.
    """
    from lockstep.progress import Progress
    from lockstep.simulation import Settings, bugs_in_words
    from lockstep.simulation import simulate as make

    if bug == "help":
        if as_json:
            print_json(bugs_in_words())
        else:
            print_table(("name", "summary"), [(row["name"], row["summary"]) for row in bugs_in_words()])
        return
    settings = Settings(seed=seed, ops=ops, partitions=partitions, bug=bug)
    directory = out or runs_dir / settings.run
    progress = Progress(quiet=as_json)
    began = time.perf_counter()
    with progress.action(f"making {ops:,} operations"):
        planted = make(settings, directory, workers=workers)
    seconds = time.perf_counter() - began
    if as_json:
        told = {"run": settings.run, "directory": str(directory), "operations": ops, "seconds": round(seconds, 3)}
        print_json(told | {"operations_per_s": round(ops / seconds), "planted": planted})
        return
    echo(f"{ops:,} operations in {seconds:.1f} s ({ops / seconds:,.0f} per second): {directory}")
    if planted is not None:
        echo(f"planted {planted.bug}, {planted.text}")


COMMANDS = (simulate,)
