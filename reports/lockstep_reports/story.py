"""What a run amounts to, in sentences: the same ones on the page, in CI and in the summary."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lockstep_model.verdicts import RunVerdict, Status
from lockstep_reports import words
from lockstep_reports.content import Anomaly, Fault, Guarantee, Operation, Plan
from lockstep_reports.run import Run


def headline(run: Run) -> str:
    """One sentence why the verdict is what it is."""
    if run.verdict.verdict is RunVerdict.VIOLATION:
        broken = run.with_status(Status.VIOLATED)
        if not broken:
            return run.verdict.reason or "The checker reports a violation without naming a guarantee."
        others = f" Also broken: {words.listing([it.name for it in broken[1:]])}." if broken[1:] else ""
        return f"{broken[0].name} is broken: {_sentence(broken[0].reason)}{others}"
    if run.verdict.verdict is RunVerdict.UNDECIDED:
        open_ = run.with_status(Status.UNDECIDED)
        reason = run.verdict.reason or next((it.reason for it in open_ if it.reason), "")
        names = words.listing([it.name for it in open_])
        what = f"{names} cannot be decided" if names else "Nothing was broken, and still this is not a pass"
        return f"{what}: {_sentence(reason)}" if reason else f"{what}."
    shown = [
        f"{it.name} was broken, as this scenario expects, and that is permitted: {_sentence(it.reason)}"
        for it in _shown(run)
    ]
    return " ".join([*shown, _passed(run)])


def expected(run: Run, guarantee: Guarantee) -> str | None:
    """Whether a guarantee came out as the scenario expects, if it expects anything."""
    for expectation in run.verdict.expectations:
        if expectation.guarantee == guarantee.name:
            return "as expected" if expectation.met else f"expected: {expectation.status}"
    return None


def first_bad(run: Run) -> Anomaly | None:
    """The earliest evidence against a promise that was broken."""
    return next(iter(run.anomalies_of(*run.with_status(Status.VIOLATED))), None)


def bad_operation(run: Run, anomaly: Anomaly) -> str:
    """The operation to look at first, as one line."""
    if not anomaly.operations:
        return anomaly.text or anomaly.name
    first = min(anomaly.operations, key=lambda operation: operation.invoke_ns)
    place = f" ({anomaly.place})" if anomaly.place else ""
    return f"{operation_line(run, first)}{place}"


def operation_line(run: Run, operation: Operation) -> str:
    began = words.moment(run.since_origin(operation.invoke_ns))
    if operation.return_ns is None:
        end = f"never answered, {operation.outcome}"
    else:
        end = f"{operation.outcome} after {words.span((operation.return_ns - operation.invoke_ns) / 1e9)}"
    error = f" {operation.error}" if operation.error else ""
    return f"{operation.kind} #{operation.op} by {operation.who}, begun at {began}, {end}{error}"


def active_fault(run: Run, anomaly: Anomaly) -> str:
    """The fault that was active then: as the checker says, or else by time."""
    if anomaly.fault:
        return anomaly.fault
    if not anomaly.operations:
        return "not known"
    active = [fault for fault in run.bands if any(_overlaps(run, fault, operation) for operation in anomaly.operations)]
    return words.listing([fault_summary(fault) for fault in active]) or "none"


def _overlaps(run: Run, fault: Fault, operation: Operation) -> bool:
    over_before = fault.end_t is not None and fault.end_t < run.since_origin(operation.invoke_ns)
    ended_before = operation.return_ns is not None and run.since_origin(operation.return_ns) < fault.start_t
    return not over_before and not ended_before


def replay_command(run: Run) -> str:
    """As the run itself tells it, since only it knows where its directory is."""
    return run.info.replay or f"lockstep replay {shlex.quote(f'runs/{run.name}')}"


def check_command(run: Run) -> str:
    return f"lockstep check {shlex.quote(f'runs/{run.name}')}"


def topics(plan: Plan) -> list[str]:
    """`orders: 3 partitions, replication 3, min.insync.replicas 2`."""
    return [_named(topic, ("partitions", "replication", "min_isr")) for topic in plan.topics]


def properties(plan: Plan) -> list[str]:
    """`replica.lag.time.max.ms=30000`: what the scenario sets on every broker."""
    return [f"{name}={words.shown(name, value)}" for name, value in plan.cluster.items()]


def workloads(plan: Plan) -> list[str]:
    """`3 writers on orders: acks=all, idempotent`."""
    return [_workload(workload) for workload in plan.workloads]


def steps(plan: Plan) -> list[str]:
    """One sentence per step of the plan."""
    faults = {step.get("step"): str(step.get("fault", "the fault")) for step in plan.steps}
    return [_step(step, faults) for step in plan.steps]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultLine:
    """One line about a fault: a moment between its intent and its healing, in words."""

    t: float
    phase: str
    text: str
    alert: bool


def fault_lines(fault: Fault) -> list[FaultLine]:
    """What was intended, done, proved and healed; each line says only what the ones before it did not."""
    known: dict[str, Any] = {}
    lines: list[FaultLine] = []
    for moment in fault.moments:
        unproved = moment.phase == "proof" and moment.detail.get("bit") is False
        new = {key: value for key, value in moment.detail.items() if key != "bit" and known.get(key) != value}
        known |= new
        phase = "Not proved" if unproved else PHASES.get(moment.phase) or words.label(moment.phase).capitalize()
        lines.append(FaultLine(t=moment.t, phase=phase, text=detail(new), alert=unproved or moment.phase == "failed"))
    return lines


PHASES = {"intent": "Intended", "effect": "Done", "proof": "Proof that it bit", "healed": "Healed", "failed": "Failed"}


def detail(fields: Mapping[str, Any]) -> str:
    """Free proof fields in words; what has a before and an after is told as a change."""
    said: list[str] = []
    for key, value in fields.items():
        name = key.removesuffix("_before").removesuffix("_after")
        if key.endswith("_after") and f"{name}_before" in fields:
            continue
        if key.endswith("_before") and f"{name}_after" in fields:
            said.append(f"{words.label(name)} {words.shown(key, value)} → {words.shown(key, fields[f'{name}_after'])}")
        else:
            said.append(words.fact(key, value))
    return "; ".join(said)


def fault_summary(fault: Fault) -> str:
    """`kill of broker-2 (leader of orders-0)`."""
    if fault.resolved and fault.asked:
        return f"{fault.fault} of {fault.resolved} ({fault.asked})"
    return f"{fault.fault} of {fault.resolved or fault.asked or 'no target'}"


def _shown(run: Run) -> list[Guarantee]:
    """What the scenario is there to show: a promise that Kafka does not make, broken."""
    wanted = {it.guarantee for it in run.verdict.expectations if it.met}
    return [it for it in run.with_status(Status.PERMITTED) if it.name in wanted]


def _passed(run: Run) -> str:
    held, permitted = run.with_status(Status.HELD), run.with_status(Status.PERMITTED)
    if not held and not permitted:
        return "No guarantee was examined."
    sentence = f"{len(held)} of {words.plural(len(run.verdict.guarantees), 'guarantee')} held"
    others = [it.name for it in permitted if it not in _shown(run)]
    if others:
        names = words.listing(others)
        sentence += f", and what happened to {names} is permitted under this configuration"
    acknowledged = run.verdict.counts.get("acknowledged")
    if acknowledged:
        sentence += f", over {words.plural(acknowledged, 'acknowledged write')}"
    if run.faults:
        done = list(dict.fromkeys(fault_summary(fault) for fault in run.faults))
        more = f" and {len(done) - 2} more" if len(done) > 2 else ""
        sentence += f", through the {words.listing(done[:2])}{more}"
    return f"{sentence}."


def _sentence(text: str) -> str:
    text = text.strip() or "the checker gave no reason"
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _named(fields: Mapping[str, Any], known: tuple[str, ...]) -> str:
    said = {"partitions": "{} partitions", "replication": "replication {}", "min_isr": "min.insync.replicas {}"}
    parts = [said[key].format(words.plain(fields[key])) for key in known if key in fields]
    rest = {key: value for key, value in fields.items() if key not in (*known, "name") and value != {}}
    parts += [words.fact(key, value) for key, value in rest.items()]
    return f"{words.plain(fields.get('name', 'topic'))}: {', '.join(parts).replace('1 partitions', '1 partition')}"


def _workload(workload: Mapping[str, Any]) -> str:
    fields = dict(workload)
    kind, topic, clients = fields.pop("kind", "client"), fields.pop("topic", None), fields.pop("clients", 1)
    who = {"write": "writer", "read": "reader"}.get(str(kind), f"{kind} client")
    said = words.plural(clients, who) if isinstance(clients, int) else f"{words.plain(clients)} {who}s"
    if topic is not None:
        said += f" on {words.plain(topic)}"
    parts: list[str] = []
    acks = fields.pop("acks", None)
    if acks is not None:
        parts.append("acks=all" if acks in (-1, "all") else f"acks={words.plain(acks)}")
    idempotent = fields.pop("idempotent", None)
    if idempotent is not None:
        parts.append("idempotent" if idempotent else "not idempotent")
    parts += [words.fact(key, value) for key, value in fields.items() if value is not None]
    return f"{said}: {', '.join(parts)}" if parts else said


def _step(step: Mapping[str, Any], faults: Mapping[Any, str]) -> str:
    fields = {key: value for key, value in step.items() if key not in ("step", "action")}
    action = str(step.get("action", "step"))
    if action == "hold" and "seconds" in fields:
        exactly = "exactly " if fields.pop("exactly", False) else ""
        sentence = f"Hold for {exactly}{words.plain(fields.pop('seconds'))} s"
    elif action == "inject" and "fault" in fields:
        fault, hit = words.plain(fields.pop("fault")), words.target(fields.pop("target", "the cluster"))
        sentence = f"Inject {fault}: {hit}"
    elif action == "heal" and "of" in fields:
        of = fields.pop("of")
        sentence = f"Heal the {faults.get(of, 'fault')} of step {words.plain(of)}"
    else:
        sentence = words.label(action).capitalize()
    rest = ", ".join(words.fact(key, value) for key, value in fields.items() if value is not None)
    return f"{sentence} ({rest})" if rest else sentence
