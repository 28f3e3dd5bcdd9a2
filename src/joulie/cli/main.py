"""The entry point of `joulie` and `kubectl-joulie`: runs a command and turns whatever goes wrong into one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from joulie.cli.commands import COMPLETION_VARIABLE, root
from joulie.cli.lines import one_line
from joulie.errors import JoulieError

DEBUG_VARIABLE = "JOULIE_DEBUG"
KUBECTL_PLUGIN = "kubectl-joulie"

FAILED, WRONG_USAGE, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and ends the process with its exit code."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """The exit code of one run. Nothing but `JOULIE_DEBUG=1` ever shows a traceback."""
    _open_what_was_closed()
    _write_what_the_terminal_can_show()
    name = program_name(sys.argv[0])
    try:
        code = _complete(name) if COMPLETION_VARIABLE in os.environ else _command(name, arguments)
        sys.stdout.flush()  # here, where a closed pipe or a full disk can still be reported
    except BrokenPipeError:
        return _reader_left()
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except click.UsageError as error:
        place = error.ctx.command_path if error.ctx else name
        return _fail(error, f"{_usage(error)} see: {place} --help", WRONG_USAGE)
    except click.ClickException as error:
        return _fail(error, error.format_message(), error.exit_code)
    except JoulieError as error:
        return _fail(error, str(error), error.exit_code)
    except OSError as error:
        return _fail(error, f"cannot go on: {error}", FAILED)
    except Exception as error:  # noqa: BLE001 - the last resort, so that nobody is ever shown a traceback
        said = f"{type(error).__name__}: {error}"
        return _fail(error, f"unexpected {said}; please report it with what {DEBUG_VARIABLE}=1 shows", FAILED)
    return code


def _command(name: str, arguments: Sequence[str] | None) -> int:
    """Like click's own `main`, which handles pipes and interrupts in its own way."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        with root.make_context(name, list(given)) as context:
            root.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    return 0


def _complete(name: str) -> int:
    """What the shell's completion script asks for."""
    from click.shell_completion import shell_complete

    return shell_complete(root, {}, name, COMPLETION_VARIABLE, os.environ[COMPLETION_VARIABLE])


def program_name(path: str) -> str:
    """What the person typed: kubectl runs its plug-in `kubectl-joulie` for `kubectl joulie`."""
    return "kubectl joulie" if os.path.basename(path).startswith(KUBECTL_PLUGIN) else "joulie"  # noqa: PTH119


def _usage(error: click.UsageError) -> str:
    """What was wrong, as the first half of a line."""
    said = error.format_message().rstrip(".")
    said = said[:1].lower() + said[1:]
    return said if said.endswith("?") else f"{said};"


def _fail(error: BaseException, message: str, code: int) -> int:
    if os.environ.get(DEBUG_VARIABLE, "0") not in ("", "0"):
        import traceback

        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    click.echo(f"joulie: {one_line(message)}", err=True)
    return code


def _reader_left() -> int:
    """Quietly, as any tool whose pipe is closed; Python must not complain about it when it ends, either."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    return PIPE_CLOSED


def _open_what_was_closed() -> None:
    """A process can be started without streams: then there is nothing to read, and what it writes goes nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


def _write_what_the_terminal_can_show() -> None:
    """An arrow that a terminal's encoding lacks becomes a question mark instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure") and (stream.encoding or "").lower() not in ("utf-8", "utf8"):
            stream.reconfigure(errors="replace")
