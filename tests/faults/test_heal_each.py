"""SIGKILL the harness in the middle of each kind of fault; `lockstep heal` leaves nothing broken and nothing alive."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lockstep.faults.fault import FaultKind, find_faults
from lockstep.recovery.ledger import LEDGER, read_ledger
from lockstep.spec.cluster import ClusterSpec
from lockstep.wait import wait_until
from tests.command import LOCKSTEP, Lockstep
from tests.test_heal import survivors

pytestmark = [pytest.mark.cluster, pytest.mark.long]

SCENARIO = """
from lockstep import PlanBuilder, scenario
from lockstep.faults.storm import targets_of
from lockstep.faults.fault import get_fault


@scenario(summary="One fault, and time to kill the harness in", cluster={cluster!r})
def one_fault(plan: PlanBuilder) -> None:
    orders = plan.topic("orders", partitions=3, replication=3, min_isr=2)
    plan.write(orders, rate_per_s=50)
    plan.hold(seconds=1)
    plan.inject({fault!r}, next(targets_of(get_fault({fault!r}), plan.spec, orders)))
    plan.hold(seconds=120)
"""


def cluster_for(kind: FaultKind) -> dict[str, object] | None:
    """The first shape of cluster on which this machine can have the fault."""
    shapes: tuple[dict[str, object], ...] = ({}, {"mode": "zk"}, {"log_dirs": 2}, {"controllers": 3})
    return next((shape for shape in shapes if kind.reason(ClusterSpec.of(**shape), "process") is None), None)


@pytest.mark.parametrize("kind", find_faults().values(), ids=lambda kind: kind.name)
def test_nothing_is_left_of_a_fault_whose_harness_died(kind: FaultKind, tmp_path: Path, lockstep: Lockstep) -> None:
    cluster = cluster_for(kind)
    if cluster is None:
        assert kind.reason(ClusterSpec(), "process"), "a fault that cannot be had says why"
        return
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "one_fault.py").write_text(SCENARIO.format(cluster=cluster, fault=kind.name))
    environment = {"LOCKSTEP_STATE": str(tmp_path / "state")}
    with subprocess.Popen(
        [LOCKSTEP, "run", "one-fault", "--scenarios", mine],
        cwd=tmp_path,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as harness:
        try:
            wait_until(
                lambda: harness.poll() is not None or had_effect(tmp_path, kind.name),
                timeout_s=300,
                what="the fault",
                interval_s=0.05,
            )
            assert harness.poll() is None, harness.stdout.read() if harness.stdout else ""
        finally:
            harness.kill()
    (run,) = tmp_path.glob("runs/*-one-fault-*")
    tokens = {entry.fields["token"] for entry in read_ledger(run / LEDGER) if entry.kind == "process"}

    healed = lockstep("heal", env=environment)

    assert healed.returncode == 0, healed.stderr + healed.stdout
    assert survivors(tokens) == []
    assert not any(entry.open for entry in read_ledger(run / LEDGER))
    assert lockstep("heal", env=environment).stdout == "nothing to heal\n"


def had_effect(directory: Path, fault: str) -> bool:
    entries = [entry for ledger in directory.glob(f"runs/*-one-fault-*/{LEDGER}") for entry in read_ledger(ledger)]
    mine = [entry for entry in entries if entry.kind == "fault" and entry.fields["fault"] == fault]
    return any(entry.phase("effect") for entry in mine)
