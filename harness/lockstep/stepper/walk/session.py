"""A lockstep session: a fresh cluster and a run directory for one or more walks, and the verdict on them."""

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
from lockstep_model.verdicts import RunVerdict

T = TypeVar("T")
V = TypeVar("V", bound=msgspec.Struct)
OnStep = Callable[[Done], None]
STEPS = "steps.jsonl"
EVENTS = "events.jsonl"
VERDICT = "verdict.json"
QUICK_NS = 200_000_000
"""Actions that take longer wait for the ISR, an election or a delayed response; throughput leaves them out."""
BEFORE_NS = 3_000_000_000
AFTER_NS = 200_000_000
"""How much of the node logs is kept before and after the action that diverged."""


class StepLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `steps.jsonl`: one action that was taken."""

    step: str
    """The action in words."""
    action: Step
    """The action as data, from which it can be repeated."""
    seen: str
    """The observed response or effect, in words."""
    decisions: tuple[str, ...]
    """The controller's decisions during the action."""
    belief: int
    """Belief size after the action."""
    took_ns: int
    events: int
    """Number of lines of `events.jsonl` up to the end of this action."""


class Diverged(msgspec.Struct, frozen=True, kw_only=True):
    """A divergence: an observation that no state of the belief explains, with the evidence for it."""

    step: int
    """Number of the action, counted from 1."""
    words: str
    """The action in words."""
    seen: str
    """The observation that no state explains."""
    permitted: tuple[str, ...]
    """The observations that some state would have explained."""
    decisions: tuple[str, ...] = ()
    """The controller's decisions during the action."""
    states: int
    """Belief size just before the observation."""
    belief: tuple[Believed, ...]
    """The belief just before, part by part."""
    examples: tuple[tuple[str, ...], ...]
    """Some states of it in full."""
    logs: tuple[Excerpt, ...] = ()
    """Excerpts of the node logs around that time."""
    shrunk: tuple[str, ...] | None = None
    """A shorter walk that diverges on a new topic, too, if one was looked for."""


class WalkVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """`verdict.json` of a walk."""

    verdict: RunVerdict
    run: str
    steps: int
    seconds: float
    quick_steps_per_second: float
    largest_belief: int
    coverage: Coverage
    wrong_model: str | None = None
    """The wrong model that was tracked instead of the right one, if any."""
    diverged: Diverged | None = None
    reason: str | None = None
    """Why the verdict is `undecided`; of a counterexample also the evidence of a violation."""
    controls: list[Control] = []
    """Result of each wrong model on this walk's events."""


class Timed(Protocol):
    """Anything with a duration, such as the verdict on a walk."""

    @property
    def seconds(self) -> float: ...


def seconds_of(walks: Iterable[Timed]) -> float:
    """Total duration of several walks."""
    return round(sum(walk.seconds for walk in walks), 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedSession(Generic[T]):
    """The run directory and the verdict of a session that has ended."""

    directory: Path
    verdict: T


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A live cluster for walks, each on a topic of its own, and the run directory where they are recorded."""

    run: RunDirectory
    cluster: Cluster
    parameters: Parameters
    """Model parameters of the cluster's Kafka version, mode and features."""
    progress: Progress

    @property
    def name(self) -> str:
        return self.run.info.run

    @contextmanager
    def recording(self, into: Path, doing: str) -> Iterator[OnStep]:
        """Write each action of a walk to `steps.jsonl` as it is taken."""
        into.mkdir(parents=True, exist_ok=True)
        with self.progress.action(doing), StepLog(into) as log:
            yield log.add

    def judged(self, into: Path, walked: Walked, wrong: WrongModel | None = None) -> WalkVerdict:
        """The verdict on a walk. Its events are written to `events.jsonl`."""
        write_events(into / EVENTS, walked.events)
        return verdict_of(self.name, walked, logs_around(self.run.path, walked), wrong=wrong)

    def end(self, verdict: V) -> EndedSession[V]:
        """Write the verdict on the session."""
        save_verdict(self.run.path, verdict)
        return EndedSession(directory=self.run.path, verdict=verdict)

    def end_with_controls(self, verdict: V, walks: Mapping[str, Walked], of: str) -> EndedSession[V]:
        """Write the verdict, then check every wrong model against these walks: each should diverge in some of them."""
        self.end(verdict)  # the controls take long, and may be interrupted
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
    """Create a run directory and start a fresh cluster in it.

    `settings` are broker configs that the user's own override. `asked` is the subcommand without cluster options.
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
    """Writes `steps.jsonl`, one line per action, unbuffered."""

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
    """Excerpts of the node logs around the divergence; none if there was none."""
    if walked.divergence is None:
        return ()
    return excerpts(directory, after_ns=walked.began_ns - BEFORE_NS, before_ns=walked.ended_ns + AFTER_NS)


def verdict_of(
    run: str, walked: Walked, logs: tuple[Excerpt, ...] = (), *, wrong: WrongModel | None = None
) -> WalkVerdict:
    """The verdict on a walk."""
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
    describer = divergence.describer
    return Diverged(
        step=len(walked.steps) + 1,
        words=str(walked.diverged_at),
        seen=divergence.seen,
        permitted=divergence.permitted,
        decisions=walked.decisions,
        states=len(divergence.before),
        belief=describer.belief(divergence.before),
        examples=describer.examples(divergence.before),
        logs=logs,
    )
