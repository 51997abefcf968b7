"""The plugin as a user's project sees it."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.cluster

EXAMPLE = """
import pytest


@pytest.mark.lockstep(brokers=1)
def test_a_cluster(lockstep_cluster):
    lockstep_cluster.create_topic("mine", partitions=2, replication=1, config={})
    assert lockstep_cluster.leader("mine", 1).leader == 1


def test_leader_kill(lockstep_run):
    finished = lockstep_run("leader-kill", seed=3, hold_s=3)
    assert finished.verdict.verdict == "pass"
    assert (finished.directory / "report.html").exists()
"""


@pytest.mark.long
def test_the_example_passes_under_two_workers(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(EXAMPLE)
    result = pytester.runpytest_subprocess("-n", "2", "-p", "no:randomly", timeout=900)
    result.assert_outcomes(passed=2)


def test_loading_the_plugin_imports_nothing_heavy(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_light():
            assert "lockstep.pytest_plugin" in sys.modules
            heavy = {"pyspark", "confluent_kafka", "pyarrow", "docker", "testcontainers"}
            assert heavy & set(sys.modules) == set()
        """
    )
    pytester.runpytest_subprocess(timeout=60).assert_outcomes(passed=1)
