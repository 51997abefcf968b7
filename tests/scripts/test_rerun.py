"""`scripts/test.py`: which failures are given a second try, and what is said of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "test.py"

FAILS_ONCE = """
import pathlib, pytest
@pytest.mark.cluster
@pytest.mark.xdist_group("clusters")
@pytest.mark.parametrize("mode", ["zk mode"])
def test_live(mode):
    seen = pathlib.Path("seen")
    again, _ = seen.exists(), seen.touch()
    assert again
"""
FAILS_ALWAYS = """
import pytest
@pytest.mark.cluster
def test_live_too():
    assert False
"""
FAILS_WITHOUT_A_CLUSTER = """
def test_quick():
    assert False
"""
PASSES = """
def test_fine():
    pass
"""


@pytest.mark.parametrize(
    ("tests", "code", "flaky"),
    [
        pytest.param([PASSES], 0, False, id="all pass"),
        pytest.param([PASSES, FAILS_ONCE], 0, True, id="a live test fails once"),
        pytest.param([FAILS_ONCE, FAILS_ALWAYS], 1, False, id="a live test fails twice"),
        pytest.param([FAILS_ONCE, FAILS_WITHOUT_A_CLUSTER], 1, False, id="a test without a cluster fails"),
        pytest.param(["import nothing_of_that_name"], 1, False, id="nothing can be collected"),
    ],
)
def test_a_second_try(tests: list[str], code: int, flaky: bool, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    cluster: starts a cluster\n")
    for number, test in enumerate(tests):
        (tmp_path / f"test_{number}.py").write_text(test)
    finished = subprocess.run(
        [sys.executable, SCRIPT, "-n", "1" if flaky else "0", "--dist", "loadgroup"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (finished.returncode != 0) == (code != 0), finished.stdout
    assert ("FLAKY" in finished.stdout) == flaky
    if flaky:
        assert finished.stdout.rstrip().endswith("test_1.py::test_live[zk mode]")
