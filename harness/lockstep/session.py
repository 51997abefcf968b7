"""A walk as a run of its own: a fresh cluster, a run directory, a verdict."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.clients import librdkafka
from harness.cluster.backends import Backend, prepare
from harness.cluster.spec import ClusterSpec
from harness.disk import replace_file
from harness.heal import owning
from harness.java import find_java
from harness.lockstep.events import write_events
from harness.lockstep.stepper import Done
from harness.lockstep.walking import OVERRIDES, Walked, parameters_of, random_steps, walk
from harness.lockstep.wrong_models import WRONG_MODELS, WrongModel, judge
from harness.progress import Progress
from harness.rundir import RunDirectory, cluster_arguments
from reference_model.parameters import Parameters

STEPS = "steps.jsonl"
EVENTS = "events.jsonl"
VERDICT = "verdict.json"
QUICK_NS = 200_000_000
"""Steps that take longer wait for something: an ISR, an election, an answer."""


class Diverged(msgspec.Struct, frozen=True, kw_only=True):
    """Where the cluster did what the model does not permit."""

    step: int
    """Its number, from 1 on."""
    words: str
    seen: str
    permitted: tuple[str, ...]
    belief: tuple[str, ...]
    """The states just before, in words of the model; some of them where there are many."""


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """A wrong model, held to the same walk."""

    name: str
    says: str
    diverged_after: int | None
    """So many things that it was told, or None if it could explain them all."""
    seen: str | None


class WalkVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """`verdict.json` of a walk."""

    verdict: str
    run: str
    steps: int
    seconds: float
    quick_steps_per_second: float
    largest_belief: int
    answers: dict[str, int]
    """How often which kind of step was answered how."""
    diverged: Diverged | None = None
    reason: str | None = None
    controls: list[Control] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped:
    """A walk that came to its end."""

    directory: Path
    verdict: WalkVerdict


def step(
    spec: ClusterSpec,
    *,
    backend: Backend,
    seed: int,
    steps: int,
    runs: Path,
    progress: Progress,
    controls: bool = False,
) -> Stepped:
    """Take so many steps, drawn from a seed, on a fresh cluster, until they are done or the cluster diverges."""
    spec = msgspec.structs.replace(spec, overrides={**OVERRIDES, **spec.overrides})
    java = find_java()
    open_cluster = prepare(spec, backend, java, progress)
    command = shlex.join(["lockstep", "step", "--seed", str(seed), "--steps", str(steps)])
    command = f"{command} {shlex.join(cluster_arguments(spec, backend))}".strip()
    directory = RunDirectory.create(
        runs,
        scenario="step",
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
        parameters = parameters_of(cluster)
        with directory.phase("walk"), progress.action(f"taking {steps} steps"), _Steps(directory.path) as log:
            walked = walk(cluster, random_steps(seed, steps), parameters, log.add)
    write_events(directory.path / EVENTS, walked.events)
    verdict = _verdict(directory.info.run, walked)
    if controls and walked.verdict == "pass":
        with progress.action(f"holding {len(WRONG_MODELS)} wrong models to it"):
            verdict = msgspec.structs.replace(verdict, controls=list(_controls(walked, parameters)))
    replace_file(directory.path / VERDICT, msgspec.json.format(msgspec.json.encode(verdict), indent=2) + b"\n")
    return Stepped(directory=directory.path, verdict=verdict)


class _Steps:
    """`steps.jsonl`, written as they are taken."""

    def __init__(self, directory: Path) -> None:
        self._file = (directory / STEPS).open("wb", buffering=0)

    def __enter__(self) -> _Steps:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, done: Done) -> None:
        line = {
            "step": str(done.step),
            "seen": done.seen,
            "decisions": done.decisions,
            "belief": done.belief,
            "took_ns": done.took_ns,
        }
        self._file.write(msgspec.json.encode(line) + b"\n")


def _verdict(run: str, walked: Walked) -> WalkVerdict:
    quick = [done.took_ns for done in walked.steps if done.took_ns < QUICK_NS]
    return WalkVerdict(
        verdict=walked.verdict,
        run=run,
        steps=len(walked.steps),
        seconds=round(walked.seconds, 3),
        quick_steps_per_second=round(len(quick) * 1e9 / sum(quick), 1) if quick else 0.0,
        largest_belief=max((done.belief for done in walked.steps), default=0),
        answers=dict(sorted(Counter(map(_answered, walked.steps)).items())),
        diverged=_diverged(walked),
        reason=walked.undecided,
    )


def _answered(done: Done) -> str:
    """A step and its answer, without what is different each time."""
    error = done.seen if done.seen.isupper() else "answered"
    return f"{type(done.step).__name__.lower()}: {error}"


def _diverged(walked: Walked) -> Diverged | None:
    divergence = walked.divergence
    if divergence is None:
        return None
    return Diverged(
        step=len(walked.steps) + 1,
        words=str(walked.diverged_at),
        seen=divergence.seen,
        permitted=divergence.permitted,
        belief=tuple(str(state) for state in divergence.before[:20]),
    )


def _controls(walked: Walked, parameters: Parameters) -> Iterable[Control]:
    return (_control(walked, parameters, wrong) for wrong in WRONG_MODELS)


def _control(walked: Walked, parameters: Parameters, wrong: WrongModel) -> Control:
    judged = judge(walked.events, wrong.parameters(parameters), wrong.reading)
    return Control(
        name=wrong.name,
        says=wrong.says,
        diverged_after=judged.events if judged.divergence is not None else None,
        seen=judged.divergence.seen if judged.divergence is not None else None,
    )
