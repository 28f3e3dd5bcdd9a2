"""The entry point of `joulie` and `kubectl-joulie`: runs a command and reports any error as one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from joulie.cli.commands import root
from joulie.cli.lazy import COMPLETION_VARIABLE
from joulie.errors import JoulieError, one_line

DEBUG_VARIABLE = "JOULIE_DEBUG"
KUBECTL_PLUGIN = "kubectl-joulie"

FAILED, WRONG_USAGE, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits the process with its exit code."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs once and returns the exit code. A traceback is shown only with `JOULIE_DEBUG=1`."""
    _reopen_closed_streams()
    _replace_unencodable_characters()
    name = program_name(sys.argv[0])
    try:
        code = _complete(name) if COMPLETION_VARIABLE in os.environ else _command(name, arguments)
        sys.stdout.flush()  # here, where a closed pipe or a full disk can still be reported
    except BrokenPipeError:
        return _broken_pipe()
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
        return _fail(error, f"system error: {error}", FAILED)
    except Exception as error:  # noqa: BLE001 - last resort: users never see a traceback
        text = f"internal error: {type(error).__name__}: {error}"
        return _fail(error, f"{text}; please report it with the output of {DEBUG_VARIABLE}=1", FAILED)
    return code


def _command(name: str, arguments: Sequence[str] | None) -> int:
    """Does what click's own `main` does, without its handling of pipes and interrupts."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        with root.make_context(name, list(given)) as context:
            root.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    return 0


def _complete(name: str) -> int:
    """Answers a request of the shell's completion script."""
    from click.shell_completion import shell_complete

    return shell_complete(root, {}, name, COMPLETION_VARIABLE, os.environ[COMPLETION_VARIABLE])


def program_name(path: str) -> str:
    """The name that was typed: kubectl runs the plug-in `kubectl-joulie` for `kubectl joulie`."""
    return "kubectl joulie" if os.path.basename(path).startswith(KUBECTL_PLUGIN) else "joulie"  # noqa: PTH119


def _usage(error: click.UsageError) -> str:
    """The message as the first half of a line."""
    message = error.format_message().rstrip(".")
    message = message[:1].lower() + message[1:]
    return message if message.endswith("?") else f"{message};"


def _fail(error: BaseException, message: str, code: int) -> int:
    if os.environ.get(DEBUG_VARIABLE, "0") not in ("", "0"):
        import traceback

        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    click.echo(f"joulie: {one_line(message)}", err=True)
    return code


def _broken_pipe() -> int:
    """Exits quietly like other tools; without this, Python would complain about the closed pipe at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    return PIPE_CLOSED


def _reopen_closed_streams() -> None:
    """A process can be started with closed streams; /dev/null then stands in for them."""
    for name, mode in (("stdin", "r"), ("stdout", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


def _replace_unencodable_characters() -> None:
    """Prints a question mark, instead of failing, where the terminal's encoding lacks a character."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure") and (stream.encoding or "").lower() not in ("utf-8", "utf8"):
            stream.reconfigure(errors="replace")
