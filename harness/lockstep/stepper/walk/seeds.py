"""Random walks on one fresh cluster: one walk, or one per seed with a verdict on all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from lockstep.cluster.backends import Backend
from lockstep.cluster.cluster import Cluster
from lockstep.progress import Progress
from lockstep.spec.cluster import ClusterSpec
from lockstep.stepper.controls.evaluation import WrongModelFound, controls
from lockstep.stepper.controls.wrong_models import WRONG_MODELS, WrongModel
from lockstep.stepper.driver.actions import Step
from lockstep.stepper.model.divergence import Divergence
from lockstep.stepper.walk.coverage import Coverage, coverage
from lockstep.stepper.walk.runner import OVERRIDES, Walked, random_steps, walk
from lockstep.stepper.walk.session import (
    EndedSession,
    Session,
    WalkVerdict,
    open_session,
    save_verdict,
    seconds_of,
)
from lockstep.stepper.walk.shrinker import in_order, shrunk
from lockstep_model.parameters import Parameters
from lockstep_model.verdicts import RunVerdict, worst

WALKS = "walks"
Hold = Callable[[Cluster, Divergence], None]
"""Called with a cluster that has just diverged; the walk waits for its return."""
SHRINK_S = 600.0
"""Time limit of shrinking. Each attempt is a walk."""


class SeededWalk(msgspec.Struct, frozen=True, kw_only=True):
    """The walk of one seed. Its steps, events and verdict are in `walks/<seed>`."""

    seed: int
    walk: WalkVerdict


class WalksVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """`verdict.json` of a run with several walks."""

    verdict: RunVerdict
    run: str
    steps: int
    seconds: float
    coverage: Coverage
    """Coverage of all walks together."""
    walks: list[SeededWalk]
    wrong_models: list[WrongModelFound] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkOptions:
    """Options of a walk, and of what follows it."""

    steps: int
    controls: bool = False
    """Check the walk's events against every wrong model, too."""
    wrong: WrongModel | None = None
    """Track this wrong model instead of the right one, so that the cluster should seem to diverge."""
    shrink: bool = False
    """After a divergence, look for a shorter walk that diverges, too."""
    hold: Hold | None = None
    """Called after a divergence, before the cluster is restored."""

    def arguments(self) -> list[str]:
        """These options as command-line arguments."""
        return [
            *("--steps", str(self.steps)),
            *(["--controls"] if self.controls else []),
            *(["--wrong-model", self.wrong.name] if self.wrong else []),
            *(["--shrink"] if self.shrink else []),
            *(["--hold"] if self.hold else []),
        ]


def step(
    spec: ClusterSpec, *, backend: Backend, seed: int, options: WalkOptions, runs: Path, progress: Progress
) -> EndedSession[WalkVerdict]:
    """Take one random walk on a fresh cluster, until its actions are done or the cluster diverges."""
    asked = ["step", "--seed", str(seed), *options.arguments()]
    with open_session(
        spec, backend=backend, settings=OVERRIDES, asked=asked, seed=seed, runs=runs, progress=progress
    ) as session:
        walked, verdict = take_walk(session, session.run.path, seed, options)
    if options.controls and walked.verdict is RunVerdict.PASS:
        with progress.action(f"holding {len(WRONG_MODELS)} wrong models to it"):
            (found,) = controls({str(seed): walked}, session.parameters).values()
        verdict = msgspec.structs.replace(verdict, controls=found)
    return session.end(verdict)


def step_many(
    spec: ClusterSpec, *, backend: Backend, seeds: Sequence[int], options: WalkOptions, runs: Path, progress: Progress
) -> EndedSession[WalksVerdict]:
    """Take one walk per seed on one cluster, also after a divergence."""
    asked = ["step", "--seeds", ",".join(map(str, seeds)), *options.arguments()]
    taken: dict[int, tuple[Walked, WalkVerdict]] = {}
    with open_session(
        spec, backend=backend, settings=OVERRIDES, asked=asked, seed=seeds[0], runs=runs, progress=progress
    ) as session:
        for seed in seeds:
            taken[seed] = take_walk(session, session.run.path / WALKS / str(seed), seed, options)
            progress.say(line_of(seed, taken[seed][1]))
    verdict = verdict_of_many(session.name, taken)
    if not options.controls:
        return session.end(verdict)
    passed = {str(seed): walked for seed, (walked, _) in taken.items() if walked.verdict is RunVerdict.PASS}
    return session.end_with_controls(verdict, passed, "walks")


def take_walk(session: Session, into: Path, seed: int, options: WalkOptions) -> tuple[Walked, WalkVerdict]:
    """Take one walk on a new topic, and record its steps, events and verdict in a directory."""
    cluster, hold = session.cluster, options.hold
    doing = f"seed {seed}: taking {options.steps} steps"
    with session.run.phase("walk"), session.recording(into, doing) as on_step:
        walked = walk(
            cluster,
            random_steps(seed, options.steps),
            session.parameters,
            on_step,
            wrong=options.wrong,
            on_divergence=lambda divergence: None if hold is None else hold(cluster, divergence),
        )
    verdict = session.judged(into, walked, options.wrong)
    save_verdict(into, verdict)  # what follows may take long, and be interrupted
    if options.shrink and verdict.diverged is not None:
        with session.run.phase("shrink"), session.progress.action("looking for fewer steps that still diverge"):
            fewer = tuple(map(str, _fewer_steps(cluster, walked, session.parameters, options.wrong)))
        diverged = msgspec.structs.replace(verdict.diverged, shrunk=fewer)
        verdict = msgspec.structs.replace(verdict, diverged=diverged)
        save_verdict(into, verdict)
    return walked, verdict


def line_of(seed: int, verdict: WalkVerdict) -> str:
    """The verdict on a walk in one line."""
    where = "" if verdict.diverged is None else f" at step {verdict.diverged.step}: {verdict.diverged.words}"
    why = f" ({verdict.reason})" if verdict.reason else ""
    return f"seed {seed}: {verdict.verdict}{where}{why}; {verdict.steps} steps in {verdict.seconds:.1f} s"


def verdict_of_many(run: str, taken: dict[int, tuple[Walked, WalkVerdict]]) -> WalksVerdict:
    """The verdict on several walks: the worst of theirs."""
    walks = [SeededWalk(seed=seed, walk=verdict) for seed, (_, verdict) in taken.items()]
    return WalksVerdict(
        verdict=worst(one.walk.verdict for one in walks),
        run=run,
        steps=sum(one.walk.steps for one in walks),
        seconds=seconds_of(one.walk for one in walks),
        coverage=coverage(*(walked.steps for walked, _ in taken.values())),
        walks=walks,
    )


def _fewer_steps(
    cluster: Cluster, walked: Walked, parameters: Parameters, wrong: WrongModel | None
) -> tuple[Step, ...]:
    """A shorter walk that still diverges. Each attempt is made on a new topic of the same cluster."""
    assert walked.diverged_at is not None
    taken = [*(done.step for done in walked.steps), walked.diverged_at]

    def diverges(steps: Sequence[Step]) -> bool:
        return walk(cluster, in_order(steps), parameters, lambda _: None, wrong=wrong).divergence is not None

    deadline = time.monotonic() + SHRINK_S
    return shrunk(taken, diverges, in_time=lambda: time.monotonic() < deadline)
