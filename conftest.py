"""What all tests share: a state directory of their own, and a CI in which nothing is skipped quietly."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest
from tests.command import LOCKSTEP, Lockstep, Refused

from lockstep.cli.main import run_cli
from lockstep.errors import ExitCode

pytest_plugins = ["pytester"]

hypothesis.settings.register_profile("lockstep", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("lockstep")


@pytest.fixture(autouse=True, scope="session")
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Tests register and heal their own runs, never those of the person who runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCKSTEP_STATE", str(tmp_path_factory.mktemp("state")))
        patch.delenv("LOCKSTEP_RUNS", raising=False)
        patch.delenv("LOCKSTEP_PORT_BASE", raising=False)
        yield


@pytest.fixture
def lockstep(tmp_path: Path) -> Lockstep:
    """Run the command as a user would, in a directory of its own."""

    def call(
        *arguments: str, env: dict[str, str] | None = None, timeout_s: float = 300
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [LOCKSTEP, *arguments],
            cwd=tmp_path,
            env=os.environ | (env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )

    return call


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Wrong usage: one sentence that says what to do, the exit code for it, and nothing on the disk.

    Returns all that was said, for some commands tell of their progress before.
    """

    def call(arguments: list[str], sentence: str) -> str:
        monkeypatch.chdir(tmp_path)
        assert run_cli(arguments) == ExitCode.USAGE
        captured = capsys.readouterr()
        assert sentence in captured.err
        assert "Traceback" not in captured.err
        assert captured.out == ""
        assert list(tmp_path.iterdir()) == []
        return captured.err

    return call


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a cluster come after each other: at random each would take the place of the one before."""
    items.sort(key=_cluster)


def _cluster(item: pytest.Item) -> str:
    """What tells the cluster that a test asks for from others, as far as its name says; who needs none comes last."""
    if item.get_closest_marker("cluster") is None:
        return "none"
    return " ".join(["a", *re.findall(r"zk|combined|\d\.\d\.\d", item.name)])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skip is a failure: something that should have been there was missing."""
    report = yield
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.longrepr = f"skipped in CI, where nothing may be missing: {reason}"
    return report
