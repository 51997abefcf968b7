"""A session: a fresh cluster, a run directory, one walk after the other, and a verdict on all of them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from lockstep.clients import librdkafka
from lockstep.cluster.backends import Backend, prepare
from lockstep.cluster.cluster import Cluster
from lockstep.heal import owning
from lockstep.host.disk import replace_file
from lockstep.host.java import find_java
from lockstep.node_logs import Excerpt, excerpts
from lockstep.progress import Progress
from lockstep.rundir import RunDirectory, cluster_arguments
from lockstep.spec.cluster import ClusterSpec
from lockstep.stepper.controls.evaluation import Control, controls, wrong_models_found
from lockstep.stepper.controls.wrong_models import WRONG_MODELS, WrongModel
from lockstep.stepper.driver.actions import Step
from lockstep.stepper.driver.driver import Done
from lockstep.stepper.model.description import Believed
from lockstep.stepper.model.events import write_events
from lockstep.stepper.walk.coverage import Coverage, coverage
from lockstep.stepper.walk.runner import Walked, parameters_of
from lockstep_model.parameters import Parameters

T = TypeVar("T")
V = TypeVar("V", bound=msgspec.Struct)
OnStep = Callable[[Done], None]
STEPS = "steps.jsonl"
EVENTS = "events.jsonl"
VERDICT = "verdict.json"
SEVERITY = ("violation", "undecided", "pass")
"""The verdict on several walks is the worst of theirs."""
QUICK_NS = 200_000_000
"""Steps that take longer wait for something: an ISR, an election, an answer."""
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


class Timed(Protocol):
    """What is told of each of several walks."""

    @property
    def seconds(self) -> float: ...


def worst(verdicts: Iterable[str]) -> str:
    """What several verdicts amount to."""
    return min(verdicts, key=SEVERITY.index, default=SEVERITY[-1])


def seconds_of(walks: Iterable[Timed]) -> float:
    """How long they took together."""
    return round(sum(walk.seconds for walk in walks), 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Generic[T]):
    """A session that came to its end."""

    directory: Path
    verdict: T


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A cluster that takes walks, each on a topic of its own, and where they are recorded."""

    run: RunDirectory
    cluster: Cluster
    parameters: Parameters
    """The model of what the cluster runs."""
    progress: Progress

    @property
    def name(self) -> str:
        return self.run.info.run

    @contextmanager
    def recording(self, into: Path, doing: str) -> Iterator[OnStep]:
        """Write down the steps of a walk as they are taken."""
        into.mkdir(parents=True, exist_ok=True)
        with self.progress.action(doing), StepLog(into) as log:
            yield log.add

    def judged(self, into: Path, walked: Walked, wrong: WrongModel | None = None) -> WalkVerdict:
        """What a walk amounts to, whose events are kept beside its steps."""
        write_events(into / EVENTS, walked.events)
        return verdict_of(self.name, walked, logs_around(self.run.path, walked), wrong=wrong)

    def end(self, verdict: V) -> Ended[V]:
        """Keep the verdict on all walks."""
        save_verdict(self.run.path, verdict)
        return Ended(directory=self.run.path, verdict=verdict)

    def end_with_controls(self, verdict: V, walks: Mapping[str, Walked], of: str) -> Ended[V]:
        """The same, when wrong models were held to these walks, too: each should diverge in some of them."""
        self.end(verdict)  # what follows takes long, and may be interrupted
        with self.progress.action(f"holding {len(WRONG_MODELS)} wrong models to {len(walks)} {of}"):
            found = wrong_models_found(controls(walks, self.parameters))
        return self.end(msgspec.structs.replace(verdict, wrong_models=found))


@contextmanager
def open_session(
    spec: ClusterSpec,
    *,
    backend: Backend,
    settings: Mapping[str, str],
    asked: Sequence[str],
    seed: int = 0,
    runs: Path,
    progress: Progress,
) -> Iterator[Session]:
    """A run directory with a fresh cluster that serves.

    It has these settings where the user has no others; `asked` is the subcommand without the options of the cluster.
    """
    spec = msgspec.structs.replace(spec, overrides={**settings, **spec.overrides})
    java = find_java()
    open_cluster = prepare(spec, backend, java, progress)
    command = shlex.join(["lockstep", *asked, *cluster_arguments(spec, backend)])
    directory = RunDirectory.create(
        runs,
        scenario=asked[0],
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
        yield Session(run=directory, cluster=cluster, parameters=parameters_of(cluster), progress=progress)


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
