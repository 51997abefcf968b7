"""`up`, `status`, `links`, `down`: what another process sees of a cluster."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.command import Lockstep

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("process-cluster")]


def test_a_kept_cluster_can_be_looked_at_from_outside(lockstep: Lockstep) -> None:
    up = lockstep("up", "--name", "mine", "--brokers", "2", "--rack", "east", "--json")
    assert up.returncode == 0, up.stderr
    try:
        taken = lockstep("up", "--name", "mine")
        assert taken.returncode == 4
        assert "there is a cluster mine already: stop it with lockstep down --name mine" in taken.stderr

        seen = json.loads(lockstep("status", "--name", "mine", "--json").stdout)
        assert [(node["name"], node["state"]) for node in seen["nodes"]] == [
            ("controller-100", "running"), ("broker-1", "running"), ("broker-2", "running"),
        ]  # fmt: skip
        assert all(0 < node["memory_mb"] < 200 for node in seen["nodes"])
        assert (seen["controller"], seen["links_broken"], seen["faults"]) == (100, [], [])

        pid = int(next(node["identity"] for node in seen["nodes"] if node["name"] == "broker-2").removeprefix("pid "))
        os.kill(pid, signal.SIGSTOP)
        words = lockstep("status", "--name", "mine").stdout
        assert [line.split()[1] for line in words.splitlines() if line.startswith("broker-")] == ["running", "paused"]

        links = json.loads(lockstep("links", "--name", "mine", "--json").stdout)
        assert {link["condition"] for link in links} == {"open"}
        to_controller = [link for link in links if link["destination"] == "controller-100"]
        assert {link["source"] for link in to_controller} == {"broker-1", "broker-2"}
        assert all(link["to_destination_bytes"] > 0 and link["to_source_bytes"] > 0 for link in to_controller)
    finally:
        down = lockstep("down", "--name", "mine")
    assert down.returncode == 0, down.stderr
    gone = lockstep("status", "--name", "mine")
    assert (gone.returncode, gone.stderr) == (4, "lockstep: there is no cluster 'mine'; none is up\n")
