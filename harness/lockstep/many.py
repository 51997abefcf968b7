"""Many walks as one run: one fresh cluster, a topic for each seed, one verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.cluster.backends import Backend
from harness.cluster.spec import ClusterSpec
from harness.lockstep.controls import WrongModelFound, controls, wrong_models_found
from harness.lockstep.coverage import Coverage, coverage
from harness.lockstep.session import WalkOptions, WalkVerdict, recorded_cluster, save_verdict, take_walk
from harness.lockstep.walking import OVERRIDES, Walked, parameters_of
from harness.lockstep.wrong_models import WRONG_MODELS
from harness.progress import Progress

WALKS = "walks"
SEVERITY = ("violation", "undecided", "pass")
"""The verdict on several walks is the worst of theirs."""


class SeededWalk(msgspec.Struct, frozen=True, kw_only=True):
    """One of the walks; its steps, events and verdict are in `walks/<seed>`."""

    seed: int
    walk: WalkVerdict


class WalksVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """`verdict.json` of such a run."""

    verdict: str
    run: str
    steps: int
    seconds: float
    coverage: Coverage
    """Of all walks together."""
    walks: list[SeededWalk]
    wrong_models: list[WrongModelFound] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class SteppedMany:
    """Walks that came to their ends."""

    directory: Path
    verdict: WalksVerdict


def step_many(
    spec: ClusterSpec, *, backend: Backend, seeds: Sequence[int], options: WalkOptions, runs: Path, progress: Progress
) -> SteppedMany:
    """Take a walk with each seed, one after the other, whatever comes of those before it."""
    spec = msgspec.structs.replace(spec, overrides={**OVERRIDES, **spec.overrides})
    asked = ["lockstep", "step", "--seeds", ",".join(map(str, seeds)), *options.arguments()]
    taken: dict[int, tuple[Walked, WalkVerdict]] = {}
    with recorded_cluster(
        spec, backend=backend, scenario="step", seed=seeds[0], asked=asked, runs=runs, progress=progress
    ) as (directory, cluster):
        parameters = parameters_of(cluster)
        for seed in seeds:
            into = directory.path / WALKS / str(seed)
            into.mkdir(parents=True)
            taken[seed] = take_walk(cluster, directory, into, seed, options, progress)
            progress.say(line_of(seed, taken[seed][1]))
    verdict = verdict_of_many(directory.info.run, taken)
    save_verdict(directory.path, verdict)  # what follows takes long, and may be interrupted
    if options.controls:
        passed = {str(seed): walked for seed, (walked, _) in taken.items() if walked.verdict == "pass"}
        with progress.action(f"holding {len(WRONG_MODELS)} wrong models to {len(passed)} walks"):
            found = wrong_models_found(controls(passed, parameters))
        verdict = msgspec.structs.replace(verdict, wrong_models=found)
        save_verdict(directory.path, verdict)
    return SteppedMany(directory=directory.path, verdict=verdict)


def line_of(seed: int, verdict: WalkVerdict) -> str:
    """A walk in one line."""
    where = "" if verdict.diverged is None else f" at step {verdict.diverged.step}: {verdict.diverged.words}"
    why = f" ({verdict.reason})" if verdict.reason else ""
    return f"seed {seed}: {verdict.verdict}{where}{why}; {verdict.steps} steps in {verdict.seconds:.1f} s"


def verdict_of_many(run: str, taken: dict[int, tuple[Walked, WalkVerdict]]) -> WalksVerdict:
    """What several walks amount to."""
    walks = [SeededWalk(seed=seed, walk=verdict) for seed, (_, verdict) in taken.items()]
    return WalksVerdict(
        verdict=min((one.walk.verdict for one in walks), key=SEVERITY.index),
        run=run,
        steps=sum(one.walk.steps for one in walks),
        seconds=round(sum(one.walk.seconds for one in walks), 3),
        coverage=coverage(*(walked.steps for walked, _ in taken.values())),
        walks=walks,
    )
