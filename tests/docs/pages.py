"""A how-to as a program: its files, patches and commands, in the order of the page.

* A block under a line that is a path and a colon (`` `tests/test_it.py`: ``) is that file.
* A block of the language `diff` is a patch.
* A block of the language `console` has commands after `$` and, below each, everything that it prints; `...` stands for
  any text. Further words in its first line are the pytest markers of what it needs: `console cluster`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SOURCES = ("harness", "reference_model", "reports", "scenarios")
TIMEOUT_S = 600

_BLOCK = re.compile(
    r"(?:^`(?P<path>[^`\n]+)`:\n\n?)?^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_COMMAND = re.compile(r"^\$ (?P<command>(?:[^\n]*\\\n)*[^\n]*)\n(?P<printed>(?:(?!\$ )[^\n]*\n)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block of a page."""

    language: str
    needs: frozenset[str]
    path: str | None
    text: str

    def changed(self) -> list[str]:
        """The files that it creates or changes."""
        return [self.path] if self.path else re.findall(r"^\+\+\+ b/(.*)$", self.text, re.MULTILINE)

    def commands(self) -> Iterator[tuple[str, str]]:
        """Each command, and what it prints."""
        for found in _COMMAND.finditer(self.text):
            yield found["command"], found["printed"]


def blocks_of(page: Path) -> list[Block]:
    found = []
    for match in _BLOCK.finditer(page.read_text()):
        language, *needs = match["info"].split() or [""]
        found.append(Block(language=language, needs=frozenset(needs), path=match["path"], text=match["text"]))
    return found


def matches(expected: str, printed: str) -> bool:
    """Whether a text is the expected one, where `...` is any text."""
    pattern = ".*".join(re.escape(part) for part in _trimmed(expected).split("..."))
    return re.fullmatch(pattern, _trimmed(printed), re.DOTALL) is not None


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


class Copy:
    """A copy of the working tree, in which the packages of the copy are the ones that are imported."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
        for name in listed.stdout.decode().split("\0"):
            original = ROOT / name
            if name and original.is_file():
                copy = directory / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(original.read_bytes())
                copy.chmod(original.stat().st_mode)

    def carry_out(self, block: Block) -> None:
        """Do what a block says; a command that fails, or prints something else, fails the test."""
        if block.path is not None:
            path = self.directory / block.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
        elif block.language == "diff":
            self._run(["git", "apply", "--verbose", "-"], block.text)
        elif block.language == "console":
            for command, expected in block.commands():
                printed = self._run(["bash", "-c", command])
                assert matches(expected, printed), f"{command}\nshould print\n{expected}\nand printed\n{printed}"

    def run(self, *command: str) -> str:
        return self._run(list(command))

    def _run(self, command: list[str], given: str = "") -> str:
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=self._environment(),
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout}"
        return done.stdout

    def _environment(self) -> dict[str, str]:
        mine = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(str(self.directory / root) for root in SOURCES),
            "GIT_CEILING_DIRECTORIES": str(self.directory.parent),
            "PYTEST_ADDOPTS": "-p no:cacheprovider",
            "COLUMNS": "120",
        }
        return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} | mine
