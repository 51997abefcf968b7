"""The `lockstep` command."""

from harness.cli.main import main

__all__ = ["main"]
