"""Every claim script holds on a cluster in containers."""

from __future__ import annotations

import os

import pytest

from lockstep.cluster.docker import engine_available
from lockstep.pytest_plugin import Clusters
from lockstep.stepper.conformance import SCRIPT_OVERRIDES, ClaimScript, Finding, run_script
from tests.scenarios.conformance.test_scripts import every_script

AVAILABLE, REASON = engine_available()

pytestmark = [
    pytest.mark.docker,
    pytest.mark.cluster,
    pytest.mark.long,
    pytest.mark.xdist_group("docker"),
    # With CI=true nothing is skipped: a missing engine fails there.
    pytest.mark.skipif(not AVAILABLE and os.environ.get("CI") != "true", reason=REASON),
]


@pytest.mark.parametrize("mode", ["kraft", "zk"])
@every_script
def test_it_holds_in_containers(mode: str, script: ClaimScript, lockstep_clusters: Clusters) -> None:
    ran = run_script(lockstep_clusters.get(mode=mode, backend="docker", overrides=SCRIPT_OVERRIDES), script)
    assert ran.finding is Finding.HOLDS, ran.evidence
