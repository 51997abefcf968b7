"""The documents stay true: every command in them exists as written, and (long) does what it says."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest

from lockstep.cli.main import lockstep as command_group
from tests.command import Lockstep

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def blocks(document: Path, language: str = "") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)


def commands(program: str) -> list[str]:
    lines = [line for document in DOCUMENTS for block in blocks(document) for line in block.splitlines()]
    return sorted({line.partition("#")[0].strip() for line in lines if line.startswith(f"{program} ")})


def test_there_are_commands_to_check() -> None:
    assert len(commands("lockstep")) >= 10
    assert "make demo" in commands("make")


@pytest.mark.parametrize("line", commands("lockstep"))
def test_every_lockstep_command_parses_as_written(line: str) -> None:
    name, *arguments = shlex.split(line)[1:]
    command = command_group.get_command(click.Context(command_group), name)
    assert command is not None, line
    command.make_context(name, arguments)


@pytest.mark.parametrize("line", commands("make"))
def test_every_make_target_exists(line: str) -> None:
    subprocess.run(["make", "--dry-run", *shlex.split(line)[1:]], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_local_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_the_readme_scenario_runs(tmp_path: Path) -> None:
    from lockstep.plan.scenario import get_scenario

    (example,) = [block for block in blocks(ROOT / "README.md", "python") if "@scenario" in block]
    (tmp_path / "mine.py").write_text(example)
    assert len(get_scenario("twice", [tmp_path]).plan(1).steps) == 8


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.spark
@pytest.mark.docker
def test_the_readme_commands_do_what_they_say(lockstep: Lockstep) -> None:
    """In the order of the README, in one directory, as a reader would."""
    (use,) = [block for block in blocks(ROOT / "README.md") if "lockstep doctor" in block]
    for line in use.splitlines():
        arguments = shlex.split(line, comments=True)[1:]
        finished = lockstep(*arguments, timeout_s=600)
        assert finished.returncode == 0, f"{line}\n{finished.stdout}\n{finished.stderr}"


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.docker
def test_the_commands_about_stepping_do_what_they_say(lockstep: Lockstep) -> None:
    """Also in one directory: what follows a walk is about the latest. Only a wrong model diverges."""
    for line in "".join(blocks(ROOT / "docs" / "lockstep.md")).splitlines():
        finished = lockstep(*shlex.split(line)[1:], timeout_s=600)
        assert finished.returncode == ("--wrong-model" in line), f"{line}\n{finished.stdout}\n{finished.stderr}"
