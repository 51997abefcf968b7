"""What came of a session, on the console: its verdict and reports, and when each wrong model diverged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from lockstep.cli.options import echo, print_json, print_table
from lockstep.errors import ExitCode
from lockstep_model.verdicts import RunVerdict

if TYPE_CHECKING:
    from lockstep.stepper.controls.evaluation import Spread, WrongModelFound
    from lockstep.stepper.walk.session import EndedSession

EXIT = {
    RunVerdict.PASS: ExitCode.PASS,
    RunVerdict.VIOLATION: ExitCode.VIOLATION,
    RunVerdict.UNDECIDED: ExitCode.UNDECIDED,
}


class Judged(Protocol):
    """What every verdict has."""

    @property
    def verdict(self) -> RunVerdict: ...


V = TypeVar("V", bound=Judged)


def tell(ended: EndedSession[V], as_json: bool, in_words: Callable[[V], str]) -> ExitCode:
    """Write the reports and say what came of it: `in_words` prints most, and returns what is said after the verdict."""
    from lockstep_reports import write_all

    report, *_ = write_all(ended.directory)
    verdict = ended.verdict
    if as_json:
        print_json(verdict)
    else:
        said = in_words(verdict)
        echo(f"verdict    {verdict.verdict.upper()}{said}")
        echo(f"run        {ended.directory}")
        echo(f"report     {report}")
    return EXIT[verdict.verdict]


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
