"""`report.html` of many walks on one cluster (`lockstep step --seeds`): a row for each, all of those that failed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from reports import words
from reports.content import Info, Outcome
from reports.document import VERDICTS, Number, document, environment_facts
from reports.files import replace
from reports.run import printable
from reports.stepping import STEPS, Pairs, cluster_numbers, judged, numbered, read_steps
from reports.stepping_junit import Case, junit_of_cases
from reports.walk import LAST_STEPS
from reports.walk_content import SeededWalk, Step, WalksVerdict

WALKS = "walks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Walks:
    """Everything that the page is made of."""

    name: str
    verdict: WalksVerdict
    info: Info = field(default_factory=Info)
    steps: dict[int, list[Step]]
    """Of the walks that diverged, by their seeds."""
    notes: tuple[str, ...] = ()

    @property
    def scenario(self) -> str:
        return f"{len(self.verdict.walks)} walks"

    @property
    def seed(self) -> int | None:
        """There are many."""
        return None

    @property
    def diverged(self) -> list[SeededWalk]:
        return [one for one in self.verdict.walks if one.walk.diverged is not None]


def are_walks(run_dir: Path) -> bool:
    return (run_dir / WALKS).is_dir()


def render_walks(run_dir: Path) -> Path:
    """Write `report.html` of many walks, whole or not at all, and return its path."""
    return replace(run_dir.resolve() / "report.html", page(load_walks(run_dir)))


def write_walks_junit(run_dir: Path) -> Path:
    """Write `junit.xml`, with a case for each walk, and return its path."""
    walks = load_walks(run_dir)
    cases = [Case(f"seed {one.seed}", one.walk.verdict, one.walk.seconds, why(one)) for one in walks.verdict.walks]
    return replace(run_dir.resolve() / "junit.xml", junit_of_cases("lockstep.step", walks.name, walks.info, cases))


def why(one: SeededWalk) -> str:
    """Why a walk did not pass."""
    diverged = one.walk.diverged
    if diverged is not None:
        return (
            f"step {diverged.step}, {diverged.words}: seen {diverged.seen}, permitted {'; '.join(diverged.permitted)}"
        )
    return one.walk.reason or ""


def load_walks(run_dir: Path) -> Walks:
    """Read the run directory of many walks."""
    directory = run_dir.resolve()
    notes: list[str] = []
    info, verdict = judged(directory, WalksVerdict, notes, "a run of walks")
    diverged = [one.seed for one in verdict.walks if one.walk.diverged is not None]
    return Walks(
        name=verdict.run or info.run or printable(directory.name),
        verdict=verdict,
        info=info,
        steps={seed: read_steps(directory / WALKS / str(seed) / STEPS, notes) for seed in diverged},
        notes=tuple(notes),
    )


def page(walks: Walks) -> str:
    """The document, ready to be written."""
    verdict = walks.verdict
    return document(
        "walks.html.j2",
        run=walks,
        title="Divergence" if verdict.verdict is Outcome.VIOLATION else VERDICTS[verdict.verdict],
        headline=headline(walks),
        numbers=_numbers(walks),
        environment=environment_facts(walks.name, walks.info),
        diverged=[(one.seed, one.walk.diverged, numbered(walks.steps[one.seed], LAST_STEPS)) for one in walks.diverged],
        why=verdict.verdict is not Outcome.PASS,
        coverage=verdict.coverage,
        pairs=Pairs.of(verdict.coverage.pairs),
        never=[model.name for model in verdict.wrong_models if not model.diverged_in],
    )


def headline(walks: Walks) -> str:
    """One sentence why the verdict is what it is."""
    verdict = walks.verdict
    in_all = f"{words.plural(verdict.steps, 'step')} of {words.plural(len(verdict.walks), 'walk')}"
    told = verdict.wrong_models
    models = f" {sum(bool(model.diverged_in) for model in told)} of {len(told)} wrong models could not explain them."
    wrong = "".join(
        {f" The model is a wrong one ({one.walk.wrong_model})." for one in walks.diverged if one.walk.wrong_model}
    )
    if walks.diverged:
        return (
            f"With {_seeds(walks, Outcome.VIOLATION)} the cluster did what no state of the model permits; "
            f"{in_all} were taken.{wrong}"
        )
    if verdict.verdict is Outcome.UNDECIDED:
        undecided = _seeds(walks, Outcome.UNDECIDED)
        return f"With {undecided} the model could not be followed to the end; {in_all} were taken."
    return f"In {in_all} the model explains everything that the cluster answered and decided.{models if told else ''}"


def _seeds(walks: Walks, outcome: Outcome) -> str:
    """The seeds of the walks that came out so."""
    seeds = [str(one.seed) for one in walks.verdict.walks if one.walk.verdict is outcome]
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {words.listing(seeds)}"


def _numbers(walks: Walks) -> list[Number]:
    verdict = walks.verdict
    known = [
        ("walks", words.count(len(verdict.walks))),
        ("steps", words.count(verdict.steps)),
        ("duration", words.seconds(verdict.seconds)),
        ("largest belief", words.count(max((one.walk.largest_belief for one in verdict.walks), default=0))),
        ("kinds of steps", words.count(len(verdict.coverage.answers))),
        *cluster_numbers(walks.info),
    ]
    return [Number(label=label, value=value) for label, value in known]
