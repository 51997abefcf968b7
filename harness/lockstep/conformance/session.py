"""Scripts as a run of their own: one fresh cluster, a topic for each, a run directory, what was found of each claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.cluster.backends import Backend
from harness.cluster.cluster import Cluster
from harness.cluster.spec import ClusterSpec
from harness.disk import replace_file
from harness.errors import UsageError
from harness.lockstep.conformance.catalogue import CATALOGUE
from harness.lockstep.conformance.running import SCRIPT_OVERRIDES, Finding, run_script
from harness.lockstep.conformance.table import CLAIMS, SCRIPTS, Scripted
from harness.lockstep.controls import WrongModelFound, controls, wrong_models_found
from harness.lockstep.events import write_events
from harness.lockstep.session import (
    EVENTS,
    STEPS,
    Diverged,
    StepLog,
    logs_around,
    recorded_cluster,
    save_verdict,
    verdict_of,
)
from harness.lockstep.walking import Walked, parameters_of
from harness.lockstep.wrong_models import WRONG_MODELS
from harness.progress import Progress
from harness.rundir import RunDirectory

CONFORMANCE = "conformance.json"
SCRIPTS_DIRECTORY = "scripts"
BROKERS = 3
"""Scripts have a leader and two followers."""


class ScriptVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one script found; its steps and events are in `scripts/<its name>`."""

    name: str
    claims: tuple[int, ...]
    shows: str
    finding: Finding
    attempts: int
    """The last of them decided; the steps of all are kept."""
    steps: int
    seconds: float
    evidence: str | None = None
    """What is not so, or what the script did not come to."""
    diverged: Diverged | None = None


class ClaimVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of one claim."""

    claim: int
    verdict: Finding
    seconds: float
    scripts: tuple[str, ...]
    evidence: str | None = None


class ConformanceVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """`verdict.json` of such a run."""

    verdict: str
    run: str
    kafka: str
    mode: str
    seconds: float
    claims: list[ClaimVerdict]
    scripts: list[ScriptVerdict]
    wrong_models: list[WrongModelFound] = []


class Conformance(msgspec.Struct, frozen=True, kw_only=True):
    """A claim in `conformance.json`, which others read."""

    claim: int
    family: str
    kafka: str
    mode: str
    wording: str
    fact: str
    observed: str
    """What the scripts have shown, or what they saw instead."""
    verdict: Finding
    evidence: tuple[str, ...]
    """The steps and answers, in the run directory."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Conformed:
    """A run that came to its end."""

    directory: Path
    verdict: ConformanceVerdict


def scripts_for(claims: Sequence[int]) -> tuple[Scripted, ...]:
    """The scripts about any of these claims."""
    unknown = sorted(set(claims) - set(CLAIMS))
    if unknown:
        known = ", ".join(map(str, CLAIMS))
        raise UsageError(f"there is no script for claim {', '.join(map(str, unknown))}; there are some for {known}")
    return tuple(script for script in SCRIPTS if set(script.claims) & set(claims))


def conform(
    spec: ClusterSpec,
    *,
    backend: Backend,
    claims: Sequence[int],
    runs: Path,
    progress: Progress,
    hold_wrong_models: bool = False,
) -> Conformed:
    """Play the scripts about these claims, one after the other, on a fresh cluster.

    Wrong models may be held to those that came to their ends, too: each should diverge in some script.
    """
    scripts = scripts_for(claims)
    if spec.brokers != BROKERS:
        raise UsageError(f"scripts are about a leader and two followers: they need {BROKERS} brokers")
    spec = msgspec.structs.replace(spec, overrides={**SCRIPT_OVERRIDES, **spec.overrides})
    asked = ["lockstep", "conform", "--claims", ",".join(map(str, claims))]
    asked += ["--controls"] if hold_wrong_models else []
    with (
        recorded_cluster(
            spec, backend=backend, scenario="conform", seed=0, asked=asked, runs=runs, progress=progress
        ) as (directory, cluster),
        directory.phase("scripts"),
    ):
        parameters = parameters_of(cluster)
        played = {script.name: _play(cluster, script, directory, progress) for script in scripts}
    verdict = _verdict(directory.info.run, spec, claims, [found for found, _ in played.values()])
    _save(directory.path, verdict)
    if hold_wrong_models:
        followed = {name: walked for name, (found, walked) in played.items() if found.finding is Finding.HOLDS}
        with progress.action(f"holding {len(WRONG_MODELS)} wrong models to {len(followed)} scripts"):
            wrong = wrong_models_found(controls(followed, parameters))
        verdict = msgspec.structs.replace(verdict, wrong_models=wrong)
        _save(directory.path, verdict)
    return Conformed(directory=directory.path, verdict=verdict)


def _save(directory: Path, verdict: ConformanceVerdict) -> None:
    save_verdict(directory, verdict)
    rows = msgspec.json.encode([conformance(claim, verdict) for claim in verdict.claims])
    replace_file(directory / CONFORMANCE, msgspec.json.format(rows, indent=2) + b"\n")


def _play(cluster: Cluster, script: Scripted, run: RunDirectory, progress: Progress) -> tuple[ScriptVerdict, Walked]:
    directory = run.path / SCRIPTS_DIRECTORY / script.name
    directory.mkdir(parents=True)
    with progress.action(f"{script.name} (claim {', '.join(map(str, script.claims))})"), StepLog(directory) as log:
        ran = run_script(cluster, script, log.add)
    write_events(directory / EVENTS, ran.walked.events)
    walk = verdict_of(run.info.run, ran.walked, logs_around(run.path, ran.walked))
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
    findings = {script.finding for script in found}
    verdict = "undecided" if Finding.UNDECIDED in findings else "pass"
    return ConformanceVerdict(
        verdict="violation" if Finding.VIOLATED in findings else verdict,
        run=run,
        kafka=spec.kafka,
        mode=spec.mode,
        seconds=round(sum(script.seconds for script in found), 3),
        claims=[_claim(claim, [script for script in found if claim in script.claims]) for claim in sorted(claims)],
        scripts=found,
    )


def _claim(claim: int, found: list[ScriptVerdict]) -> ClaimVerdict:
    """A claim is violated if any of its scripts says so, and holds if all say so."""
    worst = min(found, key=lambda script: list(Finding).index(script.finding))
    return ClaimVerdict(
        claim=claim,
        verdict=worst.finding,
        seconds=round(sum(script.seconds for script in found), 3),
        scripts=tuple(script.name for script in found),
        evidence=worst.evidence,
    )


def conformance(claim: ClaimVerdict, verdict: ConformanceVerdict) -> Conformance:
    """What was found of a claim, with what it says."""
    described = CATALOGUE[claim.claim]
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
