"""Wrong models on the console: when each diverged, over many walks or scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.cli.options import echo, print_table

if TYPE_CHECKING:
    from harness.lockstep.controls import Spread, WrongModelFound


def print_wrong_models(found: Sequence[WrongModelFound], of: str) -> None:
    """When each wrong model diverged, and which never did."""
    if not found:
        return
    echo("")
    print_table(
        ("wrong model", f"diverged in {of}", "least steps", "median", "least time", "median"),
        [
            (
                model.name,
                f"{len(model.diverged_in)} of {model.held_to}",
                *_spread(model.steps),
                *_spread(model.seconds, " s"),
            )
            for model in found
        ],
    )
    never = [model.name for model in found if not model.diverged_in]
    echo(f"never      {', '.join(never) or 'none: each diverged somewhere'}")
    echo("")


def _spread(spread: Spread | None, unit: str = "") -> tuple[str, str]:
    return ("", "") if spread is None else (f"{spread.least:.4g}{unit}", f"{spread.median:.4g}{unit}")
