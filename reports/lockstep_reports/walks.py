"""`report.html` of many walks on one cluster (`lockstep step --seeds`): a row for each, all of those that failed."""

from __future__ import annotations

from collections.abc import Iterator

from lockstep_model.verdicts import RunVerdict
from lockstep_reports import words
from lockstep_reports.junit_cases import Case
from lockstep_reports.several import Kind
from lockstep_reports.stepped_run import STEPS, Pairs, SteppedRun, numbered, read_steps
from lockstep_reports.walk import DIVERGENCE, LAST_STEPS
from lockstep_reports.walk_content import SeededWalk, Step, WalksVerdict


def cases(verdict: WalksVerdict) -> Iterator[Case]:
    for one in verdict.walks:
        yield Case(f"seed {one.seed}", one.walk.verdict, one.walk.seconds, why(one))


def why(one: SeededWalk) -> str:
    """Why a walk did not pass."""
    diverged = one.walk.diverged
    if diverged is not None:
        return (
            f"step {diverged.step}, {diverged.words}: seen {diverged.seen}, permitted {'; '.join(diverged.permitted)}"
        )
    return one.walk.reason or ""


def page(run: SteppedRun[WalksVerdict]) -> str:
    """The document, ready to be written."""
    verdict = run.verdict
    return run.page(
        "walks.html.j2",
        title=DIVERGENCE.get(verdict.verdict, ""),
        headline=headline(verdict),
        numbers=[
            ("walks", words.count(len(verdict.walks))),
            ("steps", words.count(verdict.steps)),
            ("duration", words.seconds(verdict.seconds)),
            ("largest belief", words.count(max((one.walk.largest_belief for one in verdict.walks), default=0))),
            ("kinds of steps", words.count(len(verdict.coverage.answers))),
        ],
        diverged=[(one.seed, one.walk.diverged, _last(run, one.seed)) for one in _diverged(verdict)],
        why=verdict.verdict is not RunVerdict.PASS,
        coverage=verdict.coverage,
        pairs=Pairs.of(verdict.coverage.pairs),
        never=[model.name for model in verdict.wrong_models if not model.diverged_in],
    )


def _diverged(verdict: WalksVerdict) -> list[SeededWalk]:
    return [one for one in verdict.walks if one.walk.diverged is not None]


def _last(run: SteppedRun[WalksVerdict], seed: int) -> list[tuple[int, Step]]:
    return numbered(read_steps(run.directory / WALKS.parts / str(seed) / STEPS, run.notes), LAST_STEPS)


def headline(verdict: WalksVerdict) -> str:
    """One sentence why the verdict is what it is."""
    diverged = _diverged(verdict)
    in_all = f"{words.plural(verdict.steps, 'step')} of {words.plural(len(verdict.walks), 'walk')}"
    told = verdict.wrong_models
    models = f" {sum(bool(model.diverged_in) for model in told)} of {len(told)} wrong models could not explain them."
    wrong = "".join(
        {f" The model is a wrong one ({one.walk.wrong_model})." for one in diverged if one.walk.wrong_model}
    )
    if diverged:
        return (
            f"With {_seeds(verdict, RunVerdict.VIOLATION)} the cluster did what no state of the model permits; "
            f"{in_all} were taken.{wrong}"
        )
    if verdict.verdict is RunVerdict.UNDECIDED:
        undecided = _seeds(verdict, RunVerdict.UNDECIDED)
        return f"With {undecided} the model could not be followed to the end; {in_all} were taken."
    return f"In {in_all} the model explains everything that the cluster answered and decided.{models if told else ''}"


def _seeds(verdict: WalksVerdict, outcome: RunVerdict) -> str:
    """The seeds of the walks that came out so."""
    seeds = [str(one.seed) for one in verdict.walks if one.walk.verdict is outcome]
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {words.listing(seeds)}"


WALKS = Kind(
    parts="walks",
    command="step",
    what="a run of walks",
    verdict=WalksVerdict,
    called=lambda verdict: f"{len(verdict.walks)} walks",
    page=page,
    cases=cases,
)
