"""Carries out a plan's faults: intent first, then the act, then the proof; everything healed in the end."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from lockstep.cluster import operations
from lockstep.cluster.brokers import Brokers
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.description import describe
from lockstep.cluster.operations import Phase
from lockstep.errors import FaultError, LockstepError
from lockstep.faults.fault import Fault, Proof, get_fault, undo_of
from lockstep.history.lines import FaultLine, ObservationLine
from lockstep.history.recorder import Recorder
from lockstep.plan.plan import Inject, Operate
from lockstep.recovery.ledger import Entry
from lockstep.recovery.undo import Undo

KIND = "fault"
UNRESOLVED = "no target"
"""What a fault is recorded to have hit if its target could not be resolved to a node, client or link."""


class Injector:
    """The faults of one run, by the plan step that injected them."""

    def __init__(self, cluster: Brokers, recorder: Recorder) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._active: dict[int, tuple[Inject, Fault, Entry]] = {}

    def inject(self, step: Inject) -> None:
        """Break it and prove it; a fault that did not bite is recorded without proof, and the verdict says so."""
        assert isinstance(self._cluster, Cluster), "a plan with faults is refused where nodes are not ours to break"
        at_ns = time.monotonic_ns()
        try:
            fault = get_fault(step.fault).instance(self._cluster, step.target, step.settings)
        except LockstepError as error:
            entry = self._intent(self._cluster, step, UNRESOLVED, ())
            self._refused(step, entry, UNRESOLVED, at_ns, error)
            return
        entry = self._intent(self._cluster, step, fault.resolved, undo_of(fault))
        self._active[step.step] = (step, fault, entry)
        try:
            effect = fault.inject()
        except FaultError as error:  # it refused, and so has done nothing that could be undone
            del self._active[step.step]
            self._refused(step, entry, fault.resolved, at_ns, error)
            return
        except LockstepError as error:  # it may have done some of it: healing undoes that
            self._unproven(step, fault, entry, at_ns, error)
            return
        entry.effect(detail=effect)
        try:
            proof = effect | fault.bit()
        except LockstepError as error:
            self._unproven(step, fault, entry, at_ns, error)
            return
        entry.proof(detail=proof)
        self._record(step, fault, "inject", at_ns, proof)

    def _unproven(self, step: Inject, fault: Fault, entry: Entry, at_ns: int, error: LockstepError) -> None:
        """Nothing shows that it bit, and so nothing that the run was put through what its plan says."""
        entry.proof(detail={"bit": False, "why": str(error)})
        self._record(step, fault, "inject", at_ns, None)

    @staticmethod
    def _intent(cluster: Cluster, step: Inject, resolved: str, undo: tuple[Undo, ...]) -> Entry:
        return cluster.ledger.intent(
            KIND,
            fault=step.fault,
            step=step.step,
            target_asked=str(step.target),
            target_resolved=resolved,
            **({"undo": undo} if undo else {}),
        )

    def _refused(self, step: Inject, entry: Entry, resolved: str, at_ns: int, error: LockstepError) -> None:
        """There was nothing to break: a run that tried less than it says cannot pass."""
        entry.proof(detail={"bit": False, "why": str(error)})
        entry.healed(detail={"nothing": "to undo"})
        self._write(step.step, step.fault, str(step.target), resolved, "inject", at_ns, None)

    def operate(self, step: Operate, tell: Callable[[str], None]) -> None:
        """Change the whole cluster; the phases that were observed are the proof, and each is told when it was."""
        assert isinstance(self._cluster, Cluster), "an operation is refused where nodes are not ours to restart"
        entry = self._cluster.ledger.intent(
            KIND, fault=step.operation, step=step.step, target_asked="cluster", target_resolved="every node"
        )
        began_ns = time.monotonic_ns()
        phases = []
        for phase in operations.carry_out(self._cluster, step.operation, step.to):
            phases.append(phase.name)
            entry.effect(detail={"phase": phase.name, **phase.seen})
            self._recorder.write("observations", [_observed(phase)])
            describe(self._cluster)
            tell(f"{step.operation}: {phase.name}")
        proof: Proof = {"phases": phases}
        entry.proof(detail=proof)
        entry.healed(detail={"every_node": "serves"})
        self._write(step.step, step.operation, "cluster", "every node", "inject", began_ns, proof)
        self._write(
            step.step, step.operation, "cluster", "every node", "healed", time.monotonic_ns(), {"every_node": "serves"}
        )

    def heal(self, step: int) -> None:
        """Undo one fault, and prove that it is undone; until then its entry stays open, for `lockstep heal`."""
        if step not in self._active:
            return  # it was refused
        inject, fault, entry = self._active.pop(step)
        try:
            proof = fault.heal()
        except (LockstepError, OSError) as error:
            raise FaultError(f"{inject.fault} of {fault.resolved} could not be healed: {error}") from error
        entry.healed(detail=proof)
        self._record(inject, fault, "healed", time.monotonic_ns(), proof)

    def heal_all(self) -> None:
        """Undo what is still broken, newest first; one that resists does not keep the others broken."""
        failures = []
        for step in sorted(self._active, reverse=True):
            try:
                self.heal(step)
            except FaultError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def _record(self, step: Inject, fault: Fault, phase: str, time_ns: int, proof: Proof | None) -> None:
        self._write(step.step, step.fault, str(step.target), fault.resolved, phase, time_ns, proof)

    def _write(
        self, step: int, fault: str, asked: str, resolved: str, phase: str, time_ns: int, proof: Proof | None
    ) -> None:
        line = FaultLine(
            time_ns=time_ns,
            step=step,
            fault=fault,
            target_asked=asked,
            target_resolved=resolved,
            phase=phase,
            proof=None if proof is None else msgspec.json.encode(proof).decode(),
        )
        self._recorder.write("faults", [line])


def _observed(phase: Phase) -> ObservationLine:
    now_ns = time.monotonic_ns()
    extra = msgspec.json.encode({"phase": phase.name, **phase.seen}).decode()
    return ObservationLine(asked_ns=now_ns, answered_ns=now_ns, source="operation", extra=extra)
