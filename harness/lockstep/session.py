"""A walk as a run of its own: a fresh cluster, a run directory, a verdict."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.clients import librdkafka
from harness.cluster.backends import Backend, prepare
from harness.cluster.cluster import Cluster
from harness.cluster.spec import ClusterSpec
from harness.disk import replace_file
from harness.heal import owning
from harness.java import find_java
from harness.lockstep.controls import Control, controls
from harness.lockstep.coverage import Coverage, coverage
from harness.lockstep.divergence import Divergence
from harness.lockstep.events import write_events
from harness.lockstep.shrinking import in_order, shrunk
from harness.lockstep.stepper import Done
from harness.lockstep.steps import Step
from harness.lockstep.walking import OVERRIDES, Walked, parameters_of, random_steps, walk
from harness.lockstep.wording import Believed
from harness.lockstep.wrong_models import WRONG_MODELS, WrongModel
from harness.node_logs import Excerpt, excerpts
from harness.progress import Progress
from harness.rundir import RunDirectory, cluster_arguments
from reference_model.parameters import Parameters

STEPS = "steps.jsonl"
EVENTS = "events.jsonl"
VERDICT = "verdict.json"
Hold = Callable[[Cluster, Divergence], None]
"""Is given a cluster that has just diverged, and may take its time."""
QUICK_NS = 200_000_000
"""Steps that take longer wait for something: an ISR, an election, an answer."""
SHRINK_S = 600.0
"""For how long fewer steps are looked for: each attempt is a walk."""
BEFORE_NS = 3_000_000_000
AFTER_NS = 200_000_000
"""How much of the nodes' logs is kept before the step that diverged, and after."""


class StepLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `steps.jsonl`."""

    step: str
    action: Step
    """The same, to take it again."""
    seen: str
    decisions: tuple[str, ...]
    belief: int
    took_ns: int
    events: int
    """How many lines of `events.jsonl` there are up to its end."""


class Diverged(msgspec.Struct, frozen=True, kw_only=True):
    """Where the cluster did what the model does not permit."""

    step: int
    """Its number, from 1 on."""
    words: str
    seen: str
    permitted: tuple[str, ...]
    decisions: tuple[str, ...] = ()
    """What the controller had decided during that step."""
    states: int
    """How many states the belief had just before."""
    belief: tuple[Believed, ...]
    """What they were, part by part."""
    examples: tuple[tuple[str, ...], ...]
    """Some of them as a whole."""
    logs: tuple[Excerpt, ...] = ()
    """What the nodes wrote around that moment."""
    shrunk: tuple[str, ...] | None = None
    """Fewer steps that diverge on a fresh topic, too, if they were looked for."""


class WalkVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """`verdict.json` of a walk."""

    verdict: str
    run: str
    steps: int
    seconds: float
    quick_steps_per_second: float
    largest_belief: int
    coverage: Coverage
    wrong_model: str | None = None
    """What was believed of Kafka instead of what is right, if a divergence was asked for."""
    diverged: Diverged | None = None
    reason: str | None = None
    controls: list[Control] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkOptions:
    """How a walk is taken, and what is done about it afterwards."""

    steps: int
    controls: bool = False
    """Wrong models are held to the same walk, too."""
    wrong: WrongModel | None = None
    """A wrong model takes the place of the right one, so that the cluster should seem to diverge."""
    shrink: bool = False
    """After a divergence, fewer steps are looked for that diverge, too."""
    hold: Hold | None = None
    """Is given a cluster that diverges, as it is, before it is healed."""

    def arguments(self) -> list[str]:
        """What to type for it."""
        return [
            *("--steps", str(self.steps)),
            *(["--controls"] if self.controls else []),
            *(["--wrong-model", self.wrong.name] if self.wrong else []),
            *(["--shrink"] if self.shrink else []),
            *(["--hold"] if self.hold else []),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped:
    """A walk that came to its end."""

    directory: Path
    verdict: WalkVerdict


def step(
    spec: ClusterSpec, *, backend: Backend, seed: int, options: WalkOptions, runs: Path, progress: Progress
) -> Stepped:
    """Take steps that are drawn from a seed, on a fresh cluster, until they are done or the cluster diverges."""
    spec = msgspec.structs.replace(spec, overrides={**OVERRIDES, **spec.overrides})
    asked = ["lockstep", "step", "--seed", str(seed), *options.arguments()]
    with recorded_cluster(
        spec, backend=backend, scenario="step", seed=seed, asked=asked, runs=runs, progress=progress
    ) as (directory, cluster):
        parameters = parameters_of(cluster)
        walked, verdict = take_walk(cluster, directory, directory.path, seed, options, progress)
    if options.controls and walked.verdict == "pass":
        with progress.action(f"holding {len(WRONG_MODELS)} wrong models to it"):
            (found,) = controls({str(seed): walked}, parameters).values()
        verdict = msgspec.structs.replace(verdict, controls=found)
        save_verdict(directory.path, verdict)
    return Stepped(directory=directory.path, verdict=verdict)


def take_walk(
    cluster: Cluster, run: RunDirectory, into: Path, seed: int, options: WalkOptions, progress: Progress
) -> tuple[Walked, WalkVerdict]:
    """One walk on a topic of its own, which leaves its steps, events and verdict in a directory."""
    parameters = parameters_of(cluster)
    hold = options.hold
    with run.phase("walk"), progress.action(f"seed {seed}: taking {options.steps} steps"), StepLog(into) as log:
        walked = walk(
            cluster,
            random_steps(seed, options.steps),
            parameters,
            log.add,
            wrong=options.wrong,
            on_divergence=lambda divergence: None if hold is None else hold(cluster, divergence),
        )
    write_events(into / EVENTS, walked.events)
    verdict = verdict_of(run.info.run, walked, logs_around(run.path, walked), wrong=options.wrong)
    save_verdict(into, verdict)  # what follows may take long, and be interrupted
    if options.shrink and verdict.diverged is not None:
        with run.phase("shrink"), progress.action("looking for fewer steps that still diverge"):
            fewer = tuple(map(str, _fewer_steps(cluster, walked, parameters, options.wrong)))
        diverged = msgspec.structs.replace(verdict.diverged, shrunk=fewer)
        verdict = msgspec.structs.replace(verdict, diverged=diverged)
        save_verdict(into, verdict)
    return walked, verdict


@contextmanager
def recorded_cluster(
    spec: ClusterSpec,
    *,
    backend: Backend,
    scenario: str,
    seed: int,
    asked: Sequence[str],
    runs: Path,
    progress: Progress,
) -> Iterator[tuple[RunDirectory, Cluster]]:
    """A run directory with a fresh cluster that serves; `asked` is the command without the options of the cluster."""
    java = find_java()
    open_cluster = prepare(spec, backend, java, progress)
    command = shlex.join([*asked, *cluster_arguments(spec, backend)])
    directory = RunDirectory.create(
        runs,
        scenario=scenario,
        seed=seed,
        command=command,
        replay=command,
        spec=spec,
        backend=backend,
        java=java.version,
        librdkafka=librdkafka.version(),
    )
    progress.say(f"recording to {directory.path}")
    with owning(directory.path) as ledger, open_cluster(directory.path, ledger) as cluster:
        with directory.phase("start"), progress.action(f"starting {spec.in_words()}"):
            cluster.start()
        yield directory, cluster


def save_verdict(directory: Path, verdict: msgspec.Struct) -> None:
    replace_file(directory / VERDICT, msgspec.json.format(msgspec.json.encode(verdict), indent=2) + b"\n")


class StepLog:
    """`steps.jsonl`, written as they are taken."""

    def __init__(self, directory: Path) -> None:
        self._file = (directory / STEPS).open("wb", buffering=0)

    def __enter__(self) -> StepLog:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, done: Done) -> None:
        line = StepLine(
            step=str(done.step),
            action=done.step,
            seen=done.seen,
            decisions=done.decisions,
            belief=done.belief,
            took_ns=done.took_ns,
            events=done.events,
        )
        self._file.write(msgspec.json.encode(line) + b"\n")


def logs_around(directory: Path, walked: Walked) -> tuple[Excerpt, ...]:
    """What the nodes wrote around the moment of divergence."""
    if walked.divergence is None:
        return ()
    return excerpts(directory, after_ns=walked.began_ns - BEFORE_NS, before_ns=walked.ended_ns + AFTER_NS)


def verdict_of(
    run: str, walked: Walked, logs: tuple[Excerpt, ...] = (), *, wrong: WrongModel | None = None
) -> WalkVerdict:
    """What a walk amounts to."""
    quick = [done.took_ns for done in walked.steps if done.took_ns < QUICK_NS]
    return WalkVerdict(
        verdict=walked.verdict,
        run=run,
        steps=len(walked.steps),
        seconds=round(walked.seconds, 3),
        quick_steps_per_second=round(len(quick) * 1e9 / sum(quick), 1) if quick else 0.0,
        largest_belief=max((done.belief for done in walked.steps), default=0),
        coverage=coverage(walked.steps),
        wrong_model=None if wrong is None else f"{wrong.name}: {wrong.says}",
        diverged=_diverged(walked, logs),
        reason=walked.undecided,
    )


def _diverged(walked: Walked, logs: tuple[Excerpt, ...]) -> Diverged | None:
    divergence = walked.divergence
    if divergence is None:
        return None
    wording = divergence.wording
    return Diverged(
        step=len(walked.steps) + 1,
        words=str(walked.diverged_at),
        seen=divergence.seen,
        permitted=divergence.permitted,
        decisions=walked.decisions,
        states=len(divergence.before),
        belief=wording.belief(divergence.before),
        examples=wording.examples(divergence.before),
        logs=logs,
    )


def _fewer_steps(
    cluster: Cluster, walked: Walked, parameters: Parameters, wrong: WrongModel | None
) -> tuple[Step, ...]:
    """The steps that are left of a walk that diverged, tried on fresh topics of the same cluster."""
    assert walked.diverged_at is not None
    taken = [*(done.step for done in walked.steps), walked.diverged_at]

    def diverges(steps: Sequence[Step]) -> bool:
        return walk(cluster, in_order(steps), parameters, lambda _: None, wrong=wrong).divergence is not None

    deadline = time.monotonic() + SHRINK_S
    return shrunk(taken, diverges, in_time=lambda: time.monotonic() < deadline)
