"""The user's state directory: kept clusters, secrets, and the register of runs that may need healing."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

STATE_VARIABLE = "LOCKSTEP_STATE"


def state_dir() -> Path:
    """Where kept clusters and the register of live ledgers are."""
    chosen = os.environ.get(STATE_VARIABLE)
    return Path(chosen).absolute() if chosen else Path(platformdirs.user_state_dir("lockstep"))
