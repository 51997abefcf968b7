"""`report.html` of scripts (`lockstep conform`): claims about Kafka, what was found of each, the steps that show it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from lockstep_model.verdicts import RunVerdict
from lockstep_reports import words
from lockstep_reports.conformance_content import Claim, ConformanceVerdict, Finding
from lockstep_reports.junit_cases import Case
from lockstep_reports.run import optional
from lockstep_reports.several import Kind
from lockstep_reports.stepped_run import STEPS, SteppedRun, numbered, read_steps
from lockstep_reports.walk_content import Step


def cases(verdict: ConformanceVerdict) -> Iterator[Case]:
    for script in verdict.scripts:
        yield Case(script.name, script.finding.outcome, script.seconds, script.evidence or script.shows)


def claims_of(run: SteppedRun[ConformanceVerdict]) -> list[Claim]:
    """What the claims say, as far as it is known."""
    lacking = "what the claims say is not known"
    claims = optional(run.directory / "conformance.json", list[Claim], run.notes, lacking)
    return claims or [Claim(claim=claim.claim, verdict=claim.verdict) for claim in run.verdict.claims]


def page(run: SteppedRun[ConformanceVerdict]) -> str:
    """The document, ready to be written."""
    verdict = run.verdict
    by_family = sorted(claims_of(run), key=lambda claim: claim.family)
    again = sum(script.attempts > 1 for script in verdict.scripts)
    return run.page(
        "conformance.html.j2",
        headline=headline(verdict),
        numbers=[
            ("claims", words.count(len(verdict.claims))),
            ("scripts", words.count(len(verdict.scripts))),
            ("steps", words.count(sum(script.steps for script in verdict.scripts))),
            ("duration", words.seconds(verdict.seconds)),
        ],
        alerts=[("tried again", words.count(again))] if again else [],
        families=[(family, list(claims)) for family, claims in groupby(by_family, key=lambda claim: claim.family)],
        shown_by={claim.claim: claim.scripts for claim in verdict.claims},
        scripts=[(script, _steps(run, script.name, script.steps)) for script in verdict.scripts],
        never=[model.name for model in verdict.wrong_models if not model.diverged_in],
    )


def _steps(run: SteppedRun[ConformanceVerdict], script: str, last: int) -> list[tuple[int, Step]]:
    """Those of the last attempt, numbered from the first one on."""
    path = run.directory / SCRIPTS.parts / script / STEPS
    return numbered(read_steps(path, run.notes) if path.is_file() else [], last)


def headline(verdict: ConformanceVerdict) -> str:
    """One sentence why the verdict is what it is."""
    found = {finding: [str(one.claim) for one in verdict.claims if one.verdict is finding] for finding in Finding}
    where = f"on Kafka {verdict.kafka} ({verdict.mode})"
    if verdict.verdict is RunVerdict.VIOLATION:
        return f"Claim {words.listing(found[Finding.VIOLATED])} does not hold {where}."
    if verdict.verdict is RunVerdict.UNDECIDED:
        undecided = words.listing(found[Finding.UNDECIDED])
        return f"Claim {undecided} is undecided {where}: what it is about was not reached."
    scripts = words.plural(len(verdict.scripts), "script")
    return f"{words.plural(len(verdict.claims), 'claim')} about Kafka hold {where}: {scripts} have shown it."


SCRIPTS = Kind(
    parts="scripts",
    command="conform",
    what="a run of scripts",
    verdict=ConformanceVerdict,
    called=lambda _: "conformance",
    page=page,
    cases=cases,
)
