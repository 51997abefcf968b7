"""A conformance run: scripts on one fresh cluster, a topic for each, and the finding about each claim."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from lockstep.cluster.backends import Backend
from lockstep.errors import UsageError
from lockstep.host.disk import replace_file
from lockstep.progress import Progress
from lockstep.spec.cluster import ClusterSpec
from lockstep.stepper.conformance.registry import ClaimScript, find_claims, find_scripts, shown_claims
from lockstep.stepper.conformance.runner import SCRIPT_OVERRIDES, Finding, run_script
from lockstep.stepper.controls.evaluation import WrongModelFound
from lockstep.stepper.walk.runner import Walked
from lockstep.stepper.walk.session import STEPS, Diverged, EndedSession, Session, open_session, seconds_of
from lockstep_model.verdicts import RunVerdict, worst

CONFORMANCE = "conformance.json"
SCRIPTS_DIRECTORY = "scripts"
BROKERS = 3
"""The partition of a script has a leader and two followers."""


class ScriptVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The finding of one script; its actions and events are in `scripts/<its name>`."""

    name: str
    claims: tuple[int, ...]
    shows: str
    finding: Finding
    attempts: int
    """How often the script ran. The last attempt decides; the actions of all are kept."""
    steps: int
    seconds: float
    evidence: str | None = None
    """The claim that the cluster violated, or the state that the partition did not reach."""
    diverged: Diverged | None = None


class ClaimVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The finding about one claim, from all of its scripts."""

    claim: int
    verdict: Finding
    seconds: float
    scripts: tuple[str, ...]
    evidence: str | None = None


class ConformanceVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """`verdict.json` of a conformance run."""

    verdict: RunVerdict
    run: str
    kafka: str
    mode: str
    seconds: float
    claims: list[ClaimVerdict]
    scripts: list[ScriptVerdict]
    wrong_models: list[WrongModelFound] = []


class Conformance(msgspec.Struct, frozen=True, kw_only=True):
    """A claim in `conformance.json`, for reports and other programs."""

    claim: int
    family: str
    kafka: str
    mode: str
    wording: str
    fact: str
    observed: str
    """The behaviour of Kafka that the scripts have shown, or the evidence against the claim."""
    verdict: Finding
    evidence: tuple[str, ...]
    """Files with the actions and responses, in the run directory."""
    seconds: float


def scripts_for(claims: Sequence[int]) -> tuple[ClaimScript, ...]:
    """The scripts of these claims, in the order of running."""
    shown = shown_claims()
    unknown = sorted(set(claims) - set(shown))
    if unknown:
        known = ", ".join(map(str, shown))
        raise UsageError(f"there is no script for claim {', '.join(map(str, unknown))}; there are some for {known}")
    return tuple(script for script in find_scripts() if set(script.claims) & set(claims))


def conform(
    spec: ClusterSpec,
    *,
    backend: Backend,
    claims: Sequence[int],
    runs: Path,
    progress: Progress,
    hold_wrong_models: bool = False,
) -> EndedSession[ConformanceVerdict]:
    """Run the scripts of these claims, one after the other, on a fresh cluster.

    With `hold_wrong_models`, wrong models are held to the scripts whose claims hold: each should diverge in one.
    """
    scripts = scripts_for(claims)
    if spec.brokers != BROKERS:
        raise UsageError(f"scripts are about a leader and two followers: they need {BROKERS} brokers")
    asked = ["conform", "--claims", ",".join(map(str, claims))]
    asked += ["--controls"] if hold_wrong_models else []
    with (
        open_session(
            spec, backend=backend, settings=SCRIPT_OVERRIDES, asked=asked, runs=runs, progress=progress
        ) as session,
        session.run.phase("scripts"),
    ):
        played = {script.name: _play(session, script) for script in scripts}
    verdict = _verdict(session.name, spec, claims, [found for found, _ in played.values()])
    rows = msgspec.json.encode([conformance(claim, verdict) for claim in verdict.claims])
    replace_file(session.run.path / CONFORMANCE, msgspec.json.format(rows, indent=2) + b"\n")
    if not hold_wrong_models:
        return session.end(verdict)
    followed = {name: walked for name, (found, walked) in played.items() if found.finding is Finding.HOLDS}
    return session.end_with_controls(verdict, followed, "scripts")


def _play(session: Session, script: ClaimScript) -> tuple[ScriptVerdict, Walked]:
    directory = session.run.path / SCRIPTS_DIRECTORY / script.name
    doing = f"{script.name} (claim {', '.join(map(str, script.claims))})"
    with session.recording(directory, doing) as on_step:
        ran = run_script(session.cluster, script, on_step)
    walk = session.judged(directory, ran.walked)
    found = ScriptVerdict(
        name=script.name,
        claims=script.claims,
        shows=script.shows,
        finding=ran.finding,
        attempts=ran.attempts,
        steps=walk.steps,
        seconds=walk.seconds,
        evidence=ran.evidence,
        diverged=walk.diverged,
    )
    return found, ran.walked


def _verdict(run: str, spec: ClusterSpec, claims: Sequence[int], found: list[ScriptVerdict]) -> ConformanceVerdict:
    return ConformanceVerdict(
        verdict=worst(script.finding.verdict for script in found),
        run=run,
        kafka=spec.kafka,
        mode=spec.mode,
        seconds=seconds_of(found),
        claims=[_claim(claim, [script for script in found if claim in script.claims]) for claim in sorted(claims)],
        scripts=found,
    )


def _claim(claim: int, found: list[ScriptVerdict]) -> ClaimVerdict:
    """A claim is violated if one of its scripts finds so, and holds if all find so."""
    worst_one = min(found, key=lambda script: list(Finding).index(script.finding))
    return ClaimVerdict(
        claim=claim,
        verdict=worst_one.finding,
        seconds=seconds_of(found),
        scripts=tuple(script.name for script in found),
        evidence=worst_one.evidence,
    )


def conformance(claim: ClaimVerdict, verdict: ConformanceVerdict) -> Conformance:
    """The finding about a claim, with its wording and its fact."""
    described = find_claims()[claim.claim]
    shown = [script.shows for script in verdict.scripts if script.name in claim.scripts]
    return Conformance(
        claim=claim.claim,
        family=described.family,
        kafka=verdict.kafka,
        mode=verdict.mode,
        wording=described.wording,
        fact=described.fact,
        observed=claim.evidence or " ".join(shown),
        verdict=claim.verdict,
        evidence=tuple(f"{SCRIPTS_DIRECTORY}/{name}/{STEPS}" for name in claim.scripts),
        seconds=claim.seconds,
    )
