from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow.parquet as pq
import pytest

from lockstep.checker import SAMPLE, SparkStarter, Verdict, judge
from lockstep.checker import spark as session_module
from lockstep.checker.verdict import Series
from lockstep.errors import CheckerError, EnvironmentError_, HistoryError
from lockstep.history.schema import SEALED, Role
from lockstep.simulation.simulate import simulate
from lockstep.simulation.skeleton import Settings
from tests.checker.histories import Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

on_spark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


class TestOnSpark:
    pytestmark = on_spark

    def test_verdict_and_series_are_left_in_the_run_directory(self, spark: SparkSession, tmp_path: Path) -> None:
        run = tmp_path / "run"
        shutil.copytree(SAMPLE, run)

        (verdict,) = judge([run], spark)

        assert msgspec.json.decode((run / "verdict.json").read_bytes(), type=Verdict) == verdict
        assert verdict.verdict == "pass"
        series = msgspec.json.decode((run / "series.json").read_bytes(), type=Series)
        assert sum(bucket["acknowledged"] for bucket in series.throughput) == verdict.counts["acknowledged"]
        assert sum(bucket["unknown"] for bucket in series.throughput) == verdict.counts["unknown"] > 0
        assert sum(bucket["read"] for bucket in series.throughput) == _reads_before_the_final_one(run)
        assert [bucket["t"] for bucket in series.throughput] == [
            round(number * series.bucket_s, 6) for number in range(len(series.throughput))
        ]
        assert all(row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"] <= row["max_ms"] for row in series.latency)
        assert series.phases[0]["name"] == "load"
        killed, stopped = series.faults
        proof = {"leader_after": 2, "isr_after": [2, 3]}
        assert (killed["fault"], killed["resolved"]) == ("kill", "broker-1")
        assert killed["proof"] == proof | {"crashed": ["broker-1"]}
        assert (stopped["fault"], stopped["resolved"], stopped["proof"]) == ("stop", "broker-1", proof)
        assert 0 < killed["start_t"] < killed["end_t"] < stopped["start_t"] < stopped["end_t"] < series.seconds

    def test_leader_lanes_hold_changes_only(self, spark: SparkSession, tmp_path: Path) -> None:
        run = tmp_path / "run"
        shutil.copytree(SAMPLE, run)

        judge([run], spark)

        series = msgspec.json.decode((run / "series.json").read_bytes(), type=Series)
        lane = series.leaders[0]["lane"]
        assert [(moment["leader"], moment["leader_epoch"], moment["isr"]) for moment in lane] == [
            (1, 0, [1, 2, 3]),
            (2, 1, [2, 3]),
            (2, 1, [1, 2, 3]),
            (1, 2, [1, 2, 3]),
            (2, 3, [2, 3]),
            (2, 3, [1, 2, 3]),
            (1, 4, [1, 2, 3]),
        ]

    def test_an_unsealed_history_is_judged_and_left_as_it_is(self, spark: SparkSession, tmp_path: Path) -> None:
        run = Run(tmp_path / "run")
        value = run.send(run.writer(), at=0)
        run.final((0, value))
        run.crash()
        before = {path.name: path.read_bytes() for path in (run.directory / "history").iterdir()}

        (verdict,) = judge([run.directory], spark)

        assert verdict.verdict == "pass"
        assert {path.name: path.read_bytes() for path in (run.directory / "history").iterdir()} == before

    def test_a_damaged_page_is_an_error_that_names_the_file(self, spark: SparkSession, tmp_path: Path) -> None:
        run = tmp_path / "run"
        shutil.copytree(SAMPLE, run)
        path = run / "history" / "records-sent.parquet"
        content = bytearray(path.read_bytes())
        content[4:2000] = bytes(1996)
        path.write_bytes(content)

        with pytest.raises(HistoryError, match=r"records-sent\.parquet"):
            judge([run], spark)

        assert not (run / "verdict.json").exists()

    def test_no_runs_are_no_verdicts(self, spark: SparkSession) -> None:
        assert judge([], spark) == []

    def test_spark_leaves_nothing_in_the_working_directory(self, spark: SparkSession) -> None:
        spark.range(1).count()

        assert not {"spark-warehouse", "metastore_db", "derby.log", "artifacts"} & {
            path.name for path in Path.cwd().iterdir()
        }


def _reads_before_the_final_one(run: Path) -> int:
    """Reads that count as throughput: those of all readers but the one that reads every partition to its end."""
    processes = pq.read_table(run / "history" / "processes.parquet").to_pylist()
    final = {process["process"] for process in processes if process["role"] == Role.FINAL}
    reads = pq.read_table(run / "history" / "records-read.parquet")["process"].to_pylist()
    assert final & set(reads)
    return sum(process not in final for process in reads)


def test_the_sample_is_what_simulate_makes(tmp_path: Path) -> None:
    simulate(Settings(seed=1, ops=1_000, partitions=1), tmp_path)

    for table in SEALED:
        name = f"history/{table}.parquet"
        assert pq.read_table(SAMPLE / name).equals(pq.read_table(tmp_path / name)), table
    assert (SAMPLE / "run.json").read_bytes() == (tmp_path / "run.json").read_bytes()
    assert sum(path.stat().st_size for path in SAMPLE.rglob("*") if path.is_file()) < 150_000


def test_without_java_the_error_is_raised_where_the_session_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java() -> None:
        raise EnvironmentError_("no Java: install one")

    monkeypatch.setattr(session_module, "find_java", no_java)

    with SparkStarter().start() as starter, pytest.raises(EnvironmentError_, match="install one"):
        starter.session()


def test_a_session_that_was_never_started_says_so() -> None:
    with pytest.raises(CheckerError, match="never started"):
        SparkStarter().session()


def test_importing_the_checker_does_not_import_spark() -> None:
    code = "import sys, lockstep.checker; sys.exit('pyspark' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
