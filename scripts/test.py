"""Runs pytest; a test on a live cluster that fails is run once more, alone, when all others are done.

Two cores carry two workers with a cluster each, and a busy machine makes brokers lose their sessions. A test that
passes only when it is alone is named under FLAKY and is to be mended next; one that fails again, and any failure of
a test without a cluster, fails the run.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
PYTEST = [sys.executable, "-m", "pytest"]
TESTS_FAILED = 1
"""pytest's exit code when tests ran and some failed; every other code but 0 is a failure of the run itself."""


def main(arguments: list[str]) -> int:
    LAST_FAILED.unlink(missing_ok=True)
    code = subprocess.run([*PYTEST, *arguments]).returncode
    if code != TESTS_FAILED:
        return code
    failed = {without_group(test) for test in json.loads(LAST_FAILED.read_text())}
    if failed - live(failed):
        return code
    print(f"\n{len(failed)} on live clusters failed: once more, alone", flush=True)
    code = subprocess.run([*PYTEST, "-p", "no:randomly", *sorted(failed)]).returncode
    if code == 0:
        print("\nFLAKY, passed only when run alone:", *sorted(failed), sep="\n  ")
    return code


def without_group(test: str) -> str:
    """A test's id as pytest alone has it: under `--dist loadgroup` xdist adds the group."""
    return re.sub(r"@[\w-]+$", "", test)


def live(tests: set[str]) -> set[str]:
    """Those of the tests that are marked `cluster`."""
    collected = subprocess.run(
        [*PYTEST, "--collect-only", "-q", "-p", "no:randomly", "-m", "cluster", *tests], capture_output=True, text=True
    )
    return tests & set(collected.stdout.splitlines())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
