"""`lockstep bench`: what it prints. How fast things are is for people to see, never for a test to insist on."""

from __future__ import annotations

import json

import pytest

from tests.command import Lockstep


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.parametrize("mode", ["kraft", "zk"])
def test_starts_are_measured_both_ways(lockstep: Lockstep, mode: str) -> None:
    measured = lockstep("bench", "start", "--mode", mode, "--brokers", "1", "--repeat", "1", "--json")
    assert measured.returncode == 0, measured.stderr
    result = json.loads(measured.stdout)
    assert result["stock_s"] > 0
    assert result["ours_s"] > 0
    assert result["ratio"] == pytest.approx(result["stock_s"] / result["ours_s"], rel=0.05)
    assert (len(result["stock_all_s"]), len(result["ours_all_s"])) == (1, 1)
    assert all(0 < size < 200 for size in result["memory_mb"].values())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("--repeat", "0"), "--repeat is 1 or more"), (("--backend", "docker"), "process backend only")],
)
def test_what_cannot_be_measured_is_refused(lockstep: Lockstep, arguments: tuple[str, ...], words: str) -> None:
    refused = lockstep("bench", "start", *arguments)
    assert refused.returncode == 4
    assert words in refused.stderr


def test_a_search_is_measured_with_its_memory(lockstep: Lockstep) -> None:
    measured = lockstep("bench", "explore", "--replicas", "2", "--workers", "2", "--json")
    assert measured.returncode == 0, measured.stderr
    result = json.loads(measured.stdout)
    assert (result["states"], result["workers"]) == (5_973, 2)
    assert result["states_per_s"] == pytest.approx(result["states"] / result["seconds"], rel=0.05)
    assert result["peak_memory_mb"] > 0
    assert result["ratio"] > 0
