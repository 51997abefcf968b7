"""Class-data archives: what makes every later node start quickly."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from lockstep.host.java import Java


def trained_path(directory: Path, java: Java, identity: str) -> Path:
    """Archives are bound to the exact Java build and to the class path that `identity` tells, so their place is too."""
    bound_to = hashlib.sha256("\n".join([java.build, java.vendor, str(java.home), identity]).encode()).hexdigest()
    return directory / f"java-{java.version}-{bound_to[:12]}"


def usable(archive: Path, java: Java, classpath: str) -> bool:
    """Whether this Java accepts the archive for this class path (a node would silently start without it)."""
    answer = subprocess.run(
        [java.executable, "-Xshare:on", f"-XX:SharedArchiveFile={archive}", "-cp", classpath, "-version"],
        capture_output=True,
        timeout=60,
    )
    return answer.returncode == 0
