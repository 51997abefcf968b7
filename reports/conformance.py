"""`report.html` of scripts (`lockstep conform`): claims about Kafka, what was found of each, the steps that show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from reports import words
from reports.conformance_content import Claim, ConformanceVerdict, Finding
from reports.content import Info, Outcome
from reports.document import VERDICTS, Number, document, environment_facts
from reports.files import replace
from reports.run import optional, printable
from reports.stepping import STEPS, cluster_numbers, judged, numbered, read_steps
from reports.stepping_junit import Case, junit_of_cases
from reports.walk_content import Step

SCRIPTS = "scripts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conformance:
    """Everything that the page is made of."""

    name: str
    verdict: ConformanceVerdict
    info: Info = field(default_factory=Info)
    claims: list[Claim]
    steps: dict[str, list[Step]]
    """Of each script, by its name: those of all attempts."""
    notes: tuple[str, ...] = ()

    @property
    def scenario(self) -> str:
        return "conformance"

    @property
    def seed(self) -> int | None:
        """Scripts draw nothing."""
        return None


def is_conformance(run_dir: Path) -> bool:
    return (run_dir / SCRIPTS).is_dir()


def render_conformance(run_dir: Path) -> Path:
    """Write `report.html` of scripts, whole or not at all, and return its path."""
    return replace(run_dir.resolve() / "report.html", page(load_conformance(run_dir)))


def write_conformance_junit(run_dir: Path) -> Path:
    """Write `junit.xml`, with a case for each script, and return its path."""
    run = load_conformance(run_dir)
    cases = [
        Case(script.name, script.finding.outcome, script.seconds, script.evidence or script.shows)
        for script in run.verdict.scripts
    ]
    return replace(run_dir.resolve() / "junit.xml", junit_of_cases("lockstep.conform", run.name, run.info, cases))


def load_conformance(run_dir: Path) -> Conformance:
    """Read the run directory of scripts."""
    directory = run_dir.resolve()
    notes: list[str] = []
    info, verdict = judged(directory, ConformanceVerdict, notes, "a run of scripts")
    claims = optional(directory / "conformance.json", list[Claim], notes, "what the claims say is not known")
    return Conformance(
        name=verdict.run or info.run or printable(directory.name),
        verdict=verdict,
        info=info,
        claims=claims or [Claim(claim=claim.claim, verdict=claim.verdict) for claim in verdict.claims],
        steps={path.parent.name: read_steps(path, notes) for path in sorted((directory / SCRIPTS).glob(f"*/{STEPS}"))},
        notes=tuple(notes),
    )


def page(run: Conformance) -> str:
    """The document, ready to be written."""
    verdict = run.verdict
    by_family = sorted(run.claims, key=lambda claim: claim.family)
    return document(
        "conformance.html.j2",
        run=run,
        title=VERDICTS[verdict.verdict],
        headline=headline(run),
        numbers=_numbers(run),
        environment=environment_facts(run.name, run.info),
        families=[(family, list(claims)) for family, claims in groupby(by_family, key=lambda claim: claim.family)],
        shown_by={claim.claim: claim.scripts for claim in verdict.claims},
        scripts=[(script, numbered(run.steps.get(script.name, []), script.steps)) for script in verdict.scripts],
        never=[model.name for model in verdict.wrong_models if not model.diverged_in],
    )


def headline(run: Conformance) -> str:
    """One sentence why the verdict is what it is."""
    verdict = run.verdict
    found = {finding: [str(one.claim) for one in verdict.claims if one.verdict is finding] for finding in Finding}
    where = f"on Kafka {verdict.kafka} ({verdict.mode})"
    if verdict.verdict is Outcome.VIOLATION:
        return f"Claim {words.listing(found[Finding.VIOLATED])} does not hold {where}."
    if verdict.verdict is Outcome.UNDECIDED:
        undecided = words.listing(found[Finding.UNDECIDED])
        return f"Claim {undecided} is undecided {where}: what it is about was not reached."
    scripts = words.plural(len(verdict.scripts), "script")
    return f"{words.plural(len(verdict.claims), 'claim')} about Kafka hold {where}: {scripts} have shown it."


def _numbers(run: Conformance) -> list[Number]:
    verdict = run.verdict
    again = sum(script.attempts > 1 for script in verdict.scripts)
    known = [
        ("claims", words.count(len(verdict.claims))),
        ("scripts", words.count(len(verdict.scripts))),
        ("steps", words.count(sum(script.steps for script in verdict.scripts))),
        ("duration", words.seconds(verdict.seconds)),
        *cluster_numbers(run.info),
    ]
    numbers = [Number(label=label, value=value) for label, value in known]
    return [*numbers, Number(label="tried again", value=words.count(again), alert=True)] if again else numbers
