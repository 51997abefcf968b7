"""The command group, and the one place where what went wrong becomes an exit code.

click's own codes (2 for usage, 1 for an interrupt or an exception) are not our contract, so click runs in
non-standalone mode here and every ending is mapped once.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback

import click

from lockstep.cli import bench, clusters, conform, machine, model, retrace, runs, simulate, step
from lockstep.errors import ExitCode, LockstepError
from lockstep.names import suggestion
from lockstep.version import __version__

DEBUG_VARIABLE = "LOCKSTEP_DEBUG"


class _Group(click.Group):
    """A group that suggests the nearest command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise click.UsageError(f"there is no command {args[0]!r}{suggestion(args[0], self.commands)}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="lockstep")
def lockstep() -> None:
    """Chaos and conformance tests for real Apache Kafka clusters.

    Exit codes: 0 pass, 1 violation, 2 undecided, 3 the harness or the environment failed, 4 wrong usage.
    """


for module in (machine, clusters, runs, conform, step, retrace, model, simulate, bench):
    for command in module.COMMANDS:
        lockstep.add_command(command)


def main() -> None:
    """Entry point of the console script."""
    signal.signal(signal.SIGTERM, _terminated)
    sys.exit(run_cli(sys.argv[1:]))


def _terminated(*_: object) -> None:
    """CI cancels a job with SIGTERM: clean up as after Ctrl-C."""
    raise KeyboardInterrupt


def run_cli(arguments: list[str]) -> int:
    """Run one command and return its exit code; every error is one sentence on standard error."""
    try:
        # Not lockstep.main(): it exits with 1, our violation, whenever any pipe or socket breaks.
        with lockstep.make_context("lockstep", arguments) as context:
            result = lockstep.invoke(context)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return ExitCode.USAGE
    except click.UsageError as error:
        _say(error.format_message())
        if error.ctx is not None:
            print(f"Try '{error.ctx.command_path} --help'.", file=sys.stderr)
        return ExitCode.USAGE
    except click.ClickException as error:
        _say(error.format_message())
        return ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt) as interrupt:
        _say("; ".join(["interrupted", *(_notes(interrupt) or ["everything that was started has been removed"])]))
        return ExitCode.INTERRUPTED
    except LockstepError as error:
        _say(str(error))
        _say_notes(error)
        _trace()
        return error.exit_code
    except OSError as error:
        if error.errno != errno.ENOSPC:
            return _unexpected(error)
        _say("no space left on the disk of the run directory: free some, or use another disk with --runs-dir")
        _say_notes(error)
        _trace()
        return ExitCode.ENVIRONMENT
    except Exception as error:
        return _unexpected(error)
    return result if isinstance(result, int) else ExitCode.PASS


def _unexpected(error: Exception) -> int:
    traceback.print_exc()
    _say(
        f"unexpected {type(error).__name__}: {error}; this is a bug in Lockstep, please report it with the lines above"
    )
    _say_notes(error)
    return ExitCode.ENVIRONMENT


def _say(sentence: str) -> None:
    print(f"lockstep: {sentence}", file=sys.stderr)


def _say_notes(error: BaseException) -> None:
    for note in _notes(error):
        _say(note)


def _notes(error: BaseException) -> list[str]:
    """What cleaning up has to add to an error: each note is a sentence about something that is still there."""
    return list(getattr(error, "__notes__", ()))


def _trace() -> None:
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exc()
