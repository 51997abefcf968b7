"""The whole product once, as a user runs it, and what a damaged recording of it says."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lockstep.history.schema import Role
from lockstep.plan.plan import read_plan
from tests.command import LOCKSTEP, Lockstep

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.xdist_group("whole-run")]

GUARANTEES = {
    "no-lost-acks",
    "one-value-per-offset",
    "no-duplicates",
    "no-phantoms",
    "real-time-order",
    "monotonic-reads",
}


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    directory = tmp_path_factory.mktemp("whole")
    finished = subprocess.run(
        [LOCKSTEP, "run", "leader-kill", "--seed", "7", "--for", "5s"], cwd=directory, capture_output=True, text=True
    )
    return directory / "runs" / "latest", finished


def test_it_passes_and_says_so(whole_run: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    run, finished = whole_run
    assert finished.returncode == 0, finished.stderr + finished.stdout
    lines = finished.stdout
    assert "seed       7\n" in lines
    assert "kill of broker-" in lines
    assert "leader epoch 0 → 1" in lines
    assert "verdict    PASS" in lines
    assert f"lockstep replay {run.resolve()}" in lines
    for guarantee in GUARANTEES:
        assert f"held           {guarantee}" in lines


def test_the_run_directory_is_as_the_contract_says(
    whole_run: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    run, _ = whole_run
    assert run.is_symlink()
    for name in ("run.json", "plan.json", "verdict.json", "series.json", "report.html", "junit.xml", "summary.md"):
        assert (run / name).stat().st_size > 0, name
    tables = {path.name for path in (run / "history").glob("*.parquet")}
    records = [f"records-{direction}" for direction in ("sent", "read", "committed", "assigned", "revoked")]
    assert tables == {f"{table}.parquet" for table in ("processes", "operations", *records, "observations", "faults")}
    assert list((run / "history").glob("*.jsonl")) == []
    assert (run / "nodes" / "broker-1" / "server.log").stat().st_size > 0
    assert list(run.glob("nodes/*/data")) == [], "a passing run keeps no data directories"
    verdict = json.loads((run / "verdict.json").read_bytes())
    assert verdict["verdict"] == "pass"
    assert verdict["counts"]["acknowledged"] > 1000
    assert {guarantee["name"] for guarantee in verdict["guarantees"]} >= GUARANTEES


def test_the_run_tells_how_to_do_it_again(whole_run: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    run, _ = whole_run
    info = json.loads((run / "run.json").read_bytes())
    assert info["command"] == "lockstep run leader-kill --seed 7 --kafka 4.3.1 --mode kraft --for 5s"
    assert info["replay"] == f"lockstep replay runs/{run.resolve().name}"


def test_the_fault_is_proven(whole_run: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    run, _ = whole_run
    (band,) = json.loads((run / "series.json").read_bytes())["faults"]
    assert band["proof"]["leader_epoch_after"] > band["proof"]["leader_epoch_before"]
    assert band["proof"]["leader_after"] != band["proof"]["leader_before"]


def test_logs_of_a_node(whole_run: tuple[Path, subprocess.CompletedProcess[str]], lockstep: Lockstep) -> None:
    run, _ = whole_run
    printed = lockstep("logs", "broker-1", "--run", str(run), "--lines", "3")
    assert printed.returncode == 0
    assert len(printed.stdout.splitlines()) == 3
    unknown = lockstep("logs", "broker-9", "--run", str(run))
    assert unknown.returncode == 4
    assert "has no node 'broker-9'; did you mean" in unknown.stderr


Damage = Callable[[pa.Table, dict[str, Any]], pa.Table]


def acknowledged(run: Path) -> list[dict[str, Any]]:
    """Acknowledged sends of one partition, in the order of their offsets."""
    sent = pq.read_table(run / "history" / "records-sent.parquet")
    chosen = sent.filter((pc.field("outcome") == 0) & (pc.field("partition") == 0) & pc.field("offset").is_valid())
    return list(chosen.sort_by("offset").to_pylist())


def replace_where(table: pa.Table, value: int, column: str, new: int) -> pa.Table:
    index = table.schema.get_field_index(column)
    hit = pc.equal(table["value"], pa.scalar(value, pa.int64()))
    return table.set_column(
        index, table.schema.field(index), pc.if_else(hit, pa.scalar(new, pa.int64()), table[column])
    )


def edit(run: Path, stem: str, change: Callable[[pa.Table], pa.Table]) -> None:
    path = run / "history" / f"{stem}.parquet"
    pq.write_table(change(pq.read_table(path)), path, compression="zstd")


@pytest.fixture(scope="module")
def damaged(
    whole_run: tuple[Path, subprocess.CompletedProcess[str]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Copies of the recording, each damaged by hand in one place, and all judged in one job."""
    source, _ = whole_run
    base = tmp_path_factory.mktemp("damaged")
    rows = acknowledged(source)
    early, late, victim = rows[1], rows[-2], rows[len(rows) // 2]

    def copy(name: str) -> Path:
        return Path(shutil.copytree(source.resolve(), base / name))

    lost = copy("lost")
    edit(lost, "records-read", lambda table: table.filter(pc.field("value") != victim["value"]))
    swapped = copy("swapped")
    for stem in ("records-sent", "records-read"):
        edit(swapped, stem, lambda t: replace_where(t, early["value"], "offset", -7))
        edit(swapped, stem, lambda t: replace_where(t, late["value"], "offset", early["offset"]))
        edit(swapped, stem, lambda t: replace_where(t, early["value"], "offset", late["offset"]))
    changed = copy("changed")
    edit(
        changed,
        "records-read",
        lambda table: replace_where(table, victim["value"], "value", victim["value"] + 1_000_000),
    )
    judged = subprocess.run(
        [LOCKSTEP, "check", lost, swapped, changed, "--json"], capture_output=True, text=True, timeout=300
    )
    assert judged.returncode == 1, judged.stderr
    verdicts = json.loads(judged.stdout)
    names = ("lost", "swapped", "changed")
    return {name: (base / name, verdict | {"victim": victim}) for name, verdict in zip(names, verdicts, strict=True)}


def violated(verdict: dict[str, Any]) -> set[str]:
    return {guarantee["name"] for guarantee in verdict["guarantees"] if guarantee["status"] == "violated"}


def test_a_removed_record_is_a_lost_acknowledgement(damaged: dict[str, tuple[Path, dict[str, Any]]]) -> None:
    _, verdict = damaged["lost"]
    victim = verdict["victim"]
    assert verdict["verdict"] == "violation"
    assert violated(verdict) == {"no-lost-acks"}
    (anomaly,) = verdict["anomalies"]
    assert (anomaly["topic"], anomaly["partition"]) == ("orders", 0)
    assert (anomaly["offset"], anomaly["value"]) == (victim["offset"], victim["value"])
    assert victim["op"] in {operation["op"] for operation in anomaly["operations"]}


def test_offsets_swapped_against_real_time_are_seen(damaged: dict[str, tuple[Path, dict[str, Any]]]) -> None:
    _, verdict = damaged["swapped"]
    assert verdict["verdict"] == "violation"
    assert "real-time-order" in violated(verdict)


def test_a_changed_value_is_seen(damaged: dict[str, tuple[Path, dict[str, Any]]]) -> None:
    _, verdict = damaged["changed"]
    assert verdict["verdict"] == "violation"
    assert {"one-value-per-offset", "no-phantoms", "no-lost-acks"} <= violated(verdict)


def test_a_truncated_table_is_refused(
    whole_run: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path, lockstep: Lockstep
) -> None:
    source, _ = whole_run
    run = Path(shutil.copytree(source.resolve(), tmp_path / "truncated"))
    table = run / "history" / "records-read.parquet"
    os.truncate(table, table.stat().st_size // 2)
    judged = lockstep("check", str(run))
    assert judged.returncode == 3
    assert "records-read.parquet" in judged.stderr
    assert "Traceback" not in judged.stderr


def test_ctrl_c_heals_and_exits_130(tmp_path: Path, lockstep: Lockstep) -> None:
    with subprocess.Popen(
        [LOCKSTEP, "run", "leader-kill", "--for", "60s"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # A shell that starts us in the background has us ignore SIGINT, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as harness:
        assert harness.stderr is not None
        for line in harness.stderr:
            if "clients at work" in line:
                break
        harness.send_signal(signal.SIGINT)
        _, error = harness.communicate(timeout=120)
    assert harness.returncode == 130, error
    assert "interrupted; everything that was started has been removed" in error
    assert "Traceback" not in error


@pytest.fixture(scope="module")
def acks_one_loss(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    return anomaly(tmp_path_factory.mktemp("acks-one"), "acks-one-loss")


def anomaly(directory: Path, scenario: str) -> tuple[Path, subprocess.CompletedProcess[str]]:
    finished = subprocess.run(
        [LOCKSTEP, "run", scenario, "--seed", "11", "--for", "4s"], cwd=directory, capture_output=True, text=True
    )
    return directory / "runs" / "latest", finished


@pytest.mark.long
def test_acknowledged_writes_with_acks_one_vanish_and_that_is_permitted(
    acks_one_loss: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    run, finished = acks_one_loss
    assert finished.returncode == 0, finished.stderr + finished.stdout
    assert "verdict    PASS" in finished.stdout
    assert "expected       no-lost-acks permitted, and it is" in finished.stdout
    verdict = json.loads((run / "verdict.json").read_bytes())
    lost = verdict["guarantees"][0]
    assert (lost["name"], lost["status"]) == ("no-lost-acks", "permitted")
    assert lost["count"] > 0
    assert lost["reason"].startswith(f"{lost['count']:,} of {verdict['counts']['acknowledged']:,} acknowledged records")
    assert "acks=1 promises one copy, the leader's" in lost["reason"]
    summary = (run / "summary.md").read_text()
    assert "no-lost-acks was broken, as this scenario expects, and that is permitted" in summary


@pytest.mark.long
def test_the_cut_bit_and_the_old_leader_truncated_what_was_lost(
    acks_one_loss: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    run, _ = acks_one_loss
    cut, kill = json.loads((run / "series.json").read_bytes())["faults"]
    assert cut["proof"]["leader_log_end"] > max(cut["proof"]["follower_log_ends"].values())
    assert cut["proof"]["isr"] == [1, 2, 3]
    assert kill["resolved"] == cut["resolved"]
    assert kill["proof"]["leader_epoch_after"] == kill["proof"]["leader_epoch_before"] + 1
    assert kill["proof"]["log_end_before"] > kill["proof"]["log_end_after"]
    healed = [json.loads(line) for line in (run / "ledger.jsonl").read_text().splitlines()]
    (truncated,) = [line["detail"]["truncated_to"] for line in healed if "truncated_to" in (line.get("detail") or {})]
    assert truncated == kill["proof"]["log_end_after"]
    lost = [it["offset"] for it in json.loads((run / "verdict.json").read_bytes())["anomalies"]]
    assert min(lost) >= truncated


@pytest.mark.long
def test_what_a_scenario_needs_of_its_cluster_is_set_and_recorded(
    acks_one_loss: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    run, _ = acks_one_loss
    lag = {"replica.lag.time.max.ms": "30000"}
    assert read_plan(run).cluster == lag
    assert json.loads((run / "run.json").read_bytes())["spec"]["overrides"] == lag
    assert "replica.lag.time.max.ms=30000\n" in (run / "nodes" / "broker-1" / "server.properties").read_text()


@pytest.mark.long
def test_the_same_with_acks_all_loses_nothing(tmp_path: Path) -> None:
    run, finished = anomaly(tmp_path, "acks-all-survives")
    assert finished.returncode == 0, finished.stderr + finished.stdout
    assert "expected       no-lost-acks held, and it is" in finished.stdout
    lost = json.loads((run / "verdict.json").read_bytes())["guarantees"][0]
    assert (lost["status"], lost["count"]) == ("held", 0)
    _, kill = json.loads((run / "series.json").read_bytes())["faults"]
    assert kill["proof"]["log_end_before"] > kill["proof"]["log_end_after"], "nothing was at stake"


@pytest.mark.long
def test_replay_carries_out_the_stored_plan(
    whole_run: tuple[Path, subprocess.CompletedProcess[str]], lockstep: Lockstep, tmp_path: Path
) -> None:
    source, _ = whole_run
    replayed = lockstep("replay", str(source))
    assert replayed.returncode == 0, replayed.stderr
    assert read_plan(tmp_path / "runs" / "latest") == read_plan(source)


def test_roles_of_the_history(whole_run: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    run, _ = whole_run
    roles = pq.read_table(run / "history" / "processes.parquet")["role"].to_pylist()
    assert {role: roles.count(role) for role in set(roles)} == {Role.WRITER: 3, Role.READER: 2, Role.FINAL: 1}
