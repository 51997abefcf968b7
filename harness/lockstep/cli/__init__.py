"""The `lockstep` command."""

from lockstep.cli.main import main

__all__ = ["main"]
