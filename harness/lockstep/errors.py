"""Every way Lockstep can fail, and the exit code of each.

A violation of a guarantee is never an exception: it is data, in `verdict.json`. What is raised here is always about the
caller, the machine or the harness, and each message is one sentence that says what to do.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The process exit codes that callers may rely on."""

    PASS = 0
    VIOLATION = 1
    UNDECIDED = 2
    ENVIRONMENT = 3
    USAGE = 4
    INTERRUPTED = 130


class LockstepError(Exception):
    """Something that ends a command early; `str(error)` is the sentence shown to the user."""

    exit_code = ExitCode.ENVIRONMENT


class UsageError(LockstepError):
    """The caller asked for something that does not exist or cannot be; nothing on disk has changed."""

    exit_code = ExitCode.USAGE


class EnvironmentError_(LockstepError):  # noqa: N801 - the builtin has the name
    """This machine lacks something (Java, disk space, a port); the message names the fix."""


class ClusterError(LockstepError):
    """A node or the cluster did not do what it was told to."""


class AccessRefused(LockstepError):
    """The cluster does not let us in: credentials or certificates are wrong, and trying again will not help."""


class FaultError(LockstepError):
    """A fault could not be injected or healed."""


class HistoryError(LockstepError):
    """A recorded history cannot be read."""


class CheckerError(LockstepError):
    """The checker itself failed; the history is untouched."""
