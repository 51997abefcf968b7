"""What a run amounts to, in sentences: the same ones on the page, in CI and in the summary."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from reports import words
from reports.content import Anomaly, Fault, Operation, Outcome, Plan, Status
from reports.run import Run


def headline(run: Run) -> str:
    """One sentence why the verdict is what it is."""
    if run.verdict.verdict is Outcome.VIOLATION:
        broken = run.with_status(Status.VIOLATED)
        if not broken:
            return run.verdict.reason or "The checker reports a violation without naming a guarantee."
        others = f" Also broken: {words.listing([it.name for it in broken[1:]])}." if broken[1:] else ""
        return f"{broken[0].name} is broken: {_sentence(broken[0].reason)}{others}"
    if run.verdict.verdict is Outcome.UNDECIDED:
        open_ = run.with_status(Status.UNDECIDED)
        reason = run.verdict.reason or next((it.reason for it in open_ if it.reason), "")
        names = words.listing([it.name for it in open_])
        what = f"{names} cannot be decided" if names else "Nothing was broken, and still this is not a pass"
        return f"{what}: {_sentence(reason)}" if reason else f"{what}."
    return _passed(run)


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
    began = anomaly.began_ns
    if began is None:
        return "not known"
    t = run.since_origin(began)
    active = [fault.title for fault in run.bands if fault.start_t <= t and (fault.end_t is None or t <= fault.end_t)]
    return words.listing(active) or "none"


def replay_command(run: Run) -> str:
    return f"lockstep replay {shlex.quote(f'runs/{run.name}')}"


def check_command(run: Run) -> str:
    return f"lockstep check {shlex.quote(f'runs/{run.name}')}"


def topics(plan: Plan) -> list[str]:
    """`orders: 3 partitions, replication 3, min.insync.replicas 2`."""
    return [_named(topic, ("partitions", "replication", "min_isr")) for topic in plan.topics]


def workloads(plan: Plan) -> list[str]:
    """`3 writers on orders: acks=all, idempotent`."""
    return [_workload(workload) for workload in plan.workloads]


def steps(plan: Plan) -> list[str]:
    """One sentence per step of the plan."""
    faults = {step.get("step"): str(step.get("fault", "the fault")) for step in plan.steps}
    return [_step(step, faults) for step in plan.steps]


def fault_phase(phase: str) -> str:
    return {
        "intent": "Intended",
        "effect": "Done",
        "proof": "Proof that it bit",
        "healed": "Healed",
        "failed": "Failed",
    }.get(phase, words.label(phase).capitalize() or "Noted")


def detail(fields: Mapping[str, Any]) -> str:
    """Free proof fields in words; a fault that explains itself in `text` is taken at its word."""
    rest = {key: value for key, value in fields.items() if key != "text"}
    said = [str(fields["text"])] if fields.get("text") else []
    return "; ".join(said + [f"{words.label(key)} {words.shown(key, value)}" for key, value in rest.items()])


def fault_summary(fault: Fault) -> str:
    """`kill of broker-2 (leader of orders-0)`."""
    if fault.resolved and fault.asked:
        return f"{fault.fault} of {fault.resolved} ({fault.asked})"
    return f"{fault.fault} of {fault.resolved or fault.asked or 'nobody'}"


def _passed(run: Run) -> str:
    held, permitted = run.with_status(Status.HELD), run.with_status(Status.PERMITTED)
    if not held and not permitted:
        return "No guarantee was examined."
    sentence = f"{len(held)} of {words.plural(len(run.verdict.guarantees), 'guarantee')} held"
    if permitted:
        names = words.listing([it.name for it in permitted])
        sentence += f", and what happened to {names} is permitted under this configuration"
    acknowledged = run.verdict.counts.get("acknowledged")
    if acknowledged:
        sentence += f", over {words.plural(acknowledged, 'acknowledged write')}"
    if run.faults:
        done = list(dict.fromkeys(fault_summary(fault) for fault in run.faults))
        more = f" and {len(done) - 2} more" if len(done) > 2 else ""
        sentence += f", through {words.listing(done[:2])}{more}"
    return f"{sentence}."


def _sentence(text: str) -> str:
    text = text.strip() or "the checker gave no reason"
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _named(fields: Mapping[str, Any], known: tuple[str, ...]) -> str:
    said = {"partitions": "{} partitions", "replication": "replication {}", "min_isr": "min.insync.replicas {}"}
    parts = [said[key].format(words.plain(fields[key])) for key in known if key in fields]
    rest = {key: value for key, value in fields.items() if key not in (*known, "name")}
    parts += [f"{words.label(key)} {words.shown(key, value)}" for key, value in rest.items()]
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
    parts += [f"{words.label(key)} {words.shown(key, value)}" for key, value in fields.items() if value is not None]
    return f"{said}: {', '.join(parts)}" if parts else said


def _step(step: Mapping[str, Any], faults: Mapping[Any, str]) -> str:
    fields = {key: value for key, value in step.items() if key not in ("step", "action")}
    action = str(step.get("action", "step"))
    if action == "hold" and "seconds" in fields:
        sentence = f"Hold for {words.plain(fields.pop('seconds'))} s"
    elif action == "inject" and "fault" in fields:
        fault, hit = words.plain(fields.pop("fault")), words.target(fields.pop("target", "the cluster"))
        sentence = f"Inject {fault}: {hit}"
    elif action == "heal" and "of" in fields:
        of = fields.pop("of")
        sentence = f"Heal the {faults.get(of, 'fault')} of step {words.plain(of)}"
    else:
        sentence = words.label(action).capitalize()
    rest = ", ".join(
        f"{words.label(key)} {words.shown(key, value)}" for key, value in fields.items() if value is not None
    )
    return f"{sentence} ({rest})" if rest else sentence
