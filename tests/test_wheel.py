"""What a user gets from the built wheel, outside the clone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("wheel")

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel in it; the dependencies are those of this one."""
    directory = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", directory, ROOT],
        check=True,
        capture_output=True,
    )
    (wheel,) = directory.glob("kafka_lockstep-*.whl")
    environment = directory / "venv"
    venv.create(environment, with_pip=True, symlinks=True)
    subprocess.run(
        [environment / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel],
        check=True,
        capture_output=True,
    )
    (site,) = environment.glob("lib/python*/site-packages")
    dependencies = next(path for path in map(Path, sys.path) if (path / "pyspark").is_dir())
    # A .pth file in a directory that came by .pth is not read, so the editable install cannot provide our packages.
    (site / "dependencies.pth").write_text(f"{dependencies}\n")
    return environment / "bin" / "lockstep"


def call(lockstep: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([lockstep, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


def test_our_packages_come_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    code = "import lockstep, lockstep_model, lockstep_reports, lockstep_scenarios; print(lockstep.__file__)"
    finished = subprocess.run(
        [installed.parent / "python", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert str(installed.parent.parent) in finished.stdout


@pytest.mark.parametrize("name", ["harness", "reference_model", "reports", "scenarios"])
def test_a_project_may_have_packages_of_all_our_directories_names(installed: Path, tmp_path: Path, name: str) -> None:
    """pytest in such a project imports the project's own package, and Lockstep's plugin works beside it."""
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("MINE = True\n")
    (tmp_path / "conftest.py").write_text(f"import {name}\n")
    (tmp_path / "test_mine.py").write_text(
        f"""
import {name}
from lockstep import PlanBuilder, leader_of, scenario, storm

def test_mine(lockstep_runs, lockstep_run, request):
    import lockstep_reports
    assert {name}.MINE
    assert request.config.pluginmanager.hasplugin("lockstep")
    assert callable(storm) and callable(scenario) and callable(leader_of)
    assert callable(lockstep_reports.write_all)
    with __import__("pytest").raises(Exception, match="there is no scenario 'nothing'"):
        lockstep_run("nothing", seed=1)
"""
    )
    finished = subprocess.run(
        [installed.parent / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_doctor(installed: Path, tmp_path: Path) -> None:
    finished = call(installed, tmp_path, "doctor", "--json")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert {check["name"] for check in json.loads(finished.stdout) if check["required"] and not check["ok"]} == set()


@pytest.mark.parametrize(
    ("what", "name"),
    [("scenarios", "leader-kill"), ("faults", "kill"), ("guarantees", "no-lost-acks"), ("versions", "4.3.1")],
)
def test_list(installed: Path, tmp_path: Path, what: str, name: str) -> None:
    finished = call(installed, tmp_path, "list", what, "--json")
    assert finished.returncode == 0, finished.stderr
    rows = json.loads(finished.stdout)
    assert name in {row["name"] for row in rows}
    assert all(row["summary"] for row in rows)


@pytest.mark.spark
def test_check_of_the_bundled_history(installed: Path, tmp_path: Path) -> None:
    code = "from lockstep.checker import SAMPLE; print(SAMPLE)"
    sample = subprocess.run(
        [installed.parent / "python", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.strip()
    shutil.copytree(sample, tmp_path / "sample")
    finished = call(installed, tmp_path, "check", "sample", "--json")
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout)["verdict"] == "pass"


def test_compose_files_are_in_the_wheel(installed: Path) -> None:
    (compose,) = installed.parent.parent.glob("lib/python*/site-packages/lockstep/cluster/compose")
    assert {path.name for path in compose.iterdir()} == {"Dockerfile", "kraft.yaml", "zookeeper.yaml"}
    assert "FROM" in (compose / "Dockerfile").read_text()
