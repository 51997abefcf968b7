"""The `lockstep` command as tests call it: its path, and the types of the fixtures that run it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

LOCKSTEP = Path(sys.executable).parent / "lockstep"

Lockstep = Callable[..., "subprocess.CompletedProcess[str]"]
Refused = Callable[[list[str], str], str]
