"""Scripts that are wrong about Kafka, or that need a situation that does not come about."""

from __future__ import annotations

import pytest

from lockstep.claims import Error, Setting, Situation, Steps, begin, expect, followers, require, write
from lockstep.cluster.cluster import Cluster
from lockstep.pytest_plugin import Clusters
from lockstep.stepper.conformance import SCRIPT_OVERRIDES, ClaimScript, Finding, run_script
from lockstep.stepper.conformance.runner import ATTEMPTS

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("process-cluster")]


@pytest.fixture
def cluster(lockstep_clusters: Clusters) -> Cluster:
    return lockstep_clusters.get(kafka="4.3.1", overrides=SCRIPT_OVERRIDES)


def followers_take_writes(_: Setting, now: Situation) -> Steps[None]:
    now = yield from begin(now)
    written = yield from write(followers(now)[0], acks=1)
    expect(written.error is Error.NONE, "followers take writes")


def nothing_to_be_seen(_: Setting, now: Situation) -> Steps[None]:
    now = yield from begin(now)
    require(now.leader not in now.replicas, "somebody else leads")


def test_a_claim_that_is_wrong_is_violated(cluster: Cluster) -> None:
    """The reference model permits the response, and the script refuses it."""
    ran = run_script(cluster, ClaimScript(claims=(), name="wrong", shows="", script=followers_take_writes))
    assert ran.walked.divergence is None
    assert ran.finding is Finding.VIOLATED
    assert ran.evidence == "it is not so that followers take writes, after NOT_LEADER_OR_FOLLOWER"


def test_a_script_that_comes_to_no_end_decides_nothing(cluster: Cluster) -> None:
    ran = run_script(cluster, ClaimScript(claims=(), name="nothing", shows="", script=nothing_to_be_seen))
    assert (ran.finding, ran.evidence) == (Finding.UNDECIDED, "somebody else leads")
    assert ran.attempts == ATTEMPTS
