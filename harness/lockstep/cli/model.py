"""Commands about the reference model alone: no cluster is started."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from lockstep.cli.options import as_json, echo, print_json
from lockstep.errors import ExitCode

if TYPE_CHECKING:
    from lockstep_model.search import Exploration, Progress
    from lockstep_model.state_machine import State

F = TypeVar("F", bound=Callable[..., Any])

_BOUNDS = {
    "replicas": "How many replicas the partition has.",
    "log_size": "How many records a log holds.",
    "records": "How many records are written.",
    "epochs": "The highest leader epoch.",
    "partition_epochs": "The highest partition epoch.",
    "in_sync": "How many replicas are in the ISR at first.",
    "min_isr": "min.insync.replicas of the topic.",
    "fencings": "How often the session of a running broker may end.",
    "shutdowns": "How many brokers may shut down.",
    "kills": "How many brokers may be killed.",
    "power_losses": "How many brokers may lose the end of their logs.",
    "delays": "How many fetches may be under way while other things happen.",
    "preferred_elections": "How often the preferred leader may be elected.",
    "registrations": "How often each broker may register again.",
    "moves": "How often the controller may move.",
}


def bounds_options(command: F) -> F:
    """The bounds of a search, handed to the command as one argument, `bounds`: those that were given."""

    @functools.wraps(command)
    def with_bounds(*args: Any, **options: Any) -> Any:
        own = {name: options.pop(name) for name in _BOUNDS}
        given = {name: value for name, value in own.items() if value is not None}
        return command(*args, bounds=given, **options)

    decorated: Any = with_bounds
    for name, help_ in reversed(_BOUNDS.items()):
        decorated = click.option(f"--{name.replace('_', '-')}", type=click.IntRange(0, 100), help=help_)(decorated)
    return cast(F, decorated)


@click.command()
@click.option("--variant", default="kip320", show_default=True, help="What to search: see `lockstep list variants`.")
@click.option("--mutant", help="Leave out one guard of the variant, within bounds that show why it is needed.")
@bounds_options
@click.option("--invariant", "invariants", multiple=True, help="Look at this one only; may be given several times.")
@click.option("--symmetry", is_flag=True, help="Count states that differ in the names of replicas only as one.")
@click.option("--depth", type=click.IntRange(0), help="Go no further than so many actions.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="How many processes search.")
@as_json
def explore(
    variant: str,
    mutant: str | None,
    bounds: dict[str, int],
    invariants: tuple[str, ...],
    symmetry: bool,
    depth: int | None,
    workers: int,
    as_json: bool,
) -> int:
    """Search every state of a specification within bounds, and show the shortest way to what must not be.

    Exit code 1 if an invariant is broken; 2 if none is, but --depth ended the search.
    """
    from lockstep.exploration import explore as search
    from lockstep.exploration.specifications import chosen, get_specification
    from lockstep.progress import Progress

    if mutant is not None and depth is None and not bounds:
        depth = get_specification(variant, mutant).mutants[mutant].depth
    progress = Progress(quiet=as_json)
    began = time.perf_counter()
    found = search(
        chosen(variant, mutant, bounds),
        workers=workers,
        depth=depth,
        symmetric=symmetry,
        invariants=invariants or None,
        progress=_now_and_then(progress.say),
    )
    seconds = time.perf_counter() - began
    if as_json:
        print_json(_told(found, seconds))
    else:
        _print(found, seconds)
    if found.violations:
        return ExitCode.VIOLATION
    return ExitCode.PASS if found.complete else ExitCode.UNDECIDED


def _told(found: Exploration, seconds: float) -> dict[str, Any]:
    return {
        "states": found.states,
        "generated": found.generated,
        "diameter": found.diameter,
        "complete": found.complete,
        "violations": {name: violation.depth for name, violation in found.violations.items()},
        "traces": {name: violation.trace for name, violation in found.violations.items()},
        "seconds": round(seconds, 3),
    }


def _print(found: Exploration, seconds: float) -> None:
    for name, violation in found.violations.items():
        echo(f"{name} is broken after {violation.depth} actions:")
        width = max(map(len, violation.trace), default=0)
        for number, action in enumerate(violation.trace, 1):
            changed = "; ".join(_changed(*violation.states[number - 1 : number + 1]))
            echo(f"  {number:3}. {action:{width}}  {changed}".rstrip())
    searched = "all" if found.complete else "the first"
    echo(f"{searched} {found.states:,} states, {found.diameter} actions deep, in {seconds:.1f} s")
    if not found.violations:
        echo("every invariant holds" if found.complete else "every invariant holds so far")


def _changed(before: State, after: State) -> list[str]:
    """What an action led to: the parts that it changed, of those that say themselves what they are."""
    changed = [now for was, now in zip(before, after, strict=True) if was != now]
    return [str(part) for part in changed if "__str__" in vars(type(part))]


def _now_and_then(say: Callable[[str], None], interval_s: float = 5.0) -> Callable[[Progress], None]:
    """A line when the last one is some time ago."""
    said = time.monotonic()

    def tell(at: Progress) -> None:
        nonlocal said
        if time.monotonic() - said >= interval_s:
            said = time.monotonic()
            say(f"{at.depth} actions deep: {at.states:,} states, {at.frontier:,} of them new")

    return tell


COMMANDS = (explore,)
