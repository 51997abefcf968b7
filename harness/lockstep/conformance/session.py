"""Scripts as a run of their own: one fresh cluster, a topic for each, a run directory, what was found of each claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.cluster.backends import Backend
from harness.cluster.cluster import Cluster
from harness.cluster.spec import ClusterSpec
from harness.errors import UsageError
from harness.lockstep.conformance.running import SCRIPT_OVERRIDES, Finding, run_script
from harness.lockstep.conformance.table import CLAIMS, SCRIPTS, Scripted
from harness.lockstep.events import write_events
from harness.lockstep.session import (
    EVENTS,
    Diverged,
    StepLog,
    logs_around,
    recorded_cluster,
    save_verdict,
    verdict_of,
)
from harness.progress import Progress
from harness.rundir import RunDirectory

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


def conform(spec: ClusterSpec, *, backend: Backend, claims: Sequence[int], runs: Path, progress: Progress) -> Conformed:
    """Play the scripts about these claims, one after the other, on a fresh cluster."""
    scripts = scripts_for(claims)
    if spec.brokers != BROKERS:
        raise UsageError(f"scripts are about a leader and two followers: they need {BROKERS} brokers")
    spec = msgspec.structs.replace(spec, overrides={**SCRIPT_OVERRIDES, **spec.overrides})
    asked = ["lockstep", "conform", "--claims", ",".join(map(str, claims))]
    with (
        recorded_cluster(
            spec, backend=backend, scenario="conform", seed=0, asked=asked, runs=runs, progress=progress
        ) as (directory, cluster),
        directory.phase("scripts"),
    ):
        found = [_play(cluster, script, directory, progress) for script in scripts]
    verdict = _verdict(directory.info.run, spec, claims, found)
    save_verdict(directory.path, verdict)
    return Conformed(directory=directory.path, verdict=verdict)


def _play(cluster: Cluster, script: Scripted, run: RunDirectory, progress: Progress) -> ScriptVerdict:
    directory = run.path / "scripts" / script.name
    directory.mkdir(parents=True)
    with progress.action(f"{script.name} (claim {', '.join(map(str, script.claims))})"), StepLog(directory) as log:
        ran = run_script(cluster, script, log.add)
    write_events(directory / EVENTS, ran.walked.events)
    walk = verdict_of(run.info.run, ran.walked, logs_around(run.path, ran.walked))
    return ScriptVerdict(
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
