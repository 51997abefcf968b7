"""The `lockstep` command."""

import os

from lockstep.host.cache import cache_dir

# If Hypothesis is installed, kio registers its types with it, and its tables would go to the working directory.
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(cache_dir() / "hypothesis"))

from lockstep.cli.main import main

__all__ = ["main"]
