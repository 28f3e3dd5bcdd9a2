"""The errors that a person can act on. Each is one line that names what is wrong. Imports nothing of Joulie's."""

from __future__ import annotations

import re

# A user and a password before an address's host; the second form is a password with an unescaped slash, and no port.
CREDENTIALS = re.compile(r"(?<=://)(?:[^/?#\s]*@|[^\s/@:]+:(?!\d+(?:[/?#\s]|$))[^\s@]*@)")
QUERY = re.compile(r"\?[^#\s]*")  # of an address


def without_credentials(text: str) -> str:
    """The text without the user and password of any address in it, and without queries, which may hold a key."""
    return QUERY.sub("?…", CREDENTIALS.sub("", text)) if "://" in text else text


def one_line(text: object, max_chars: int | None = None) -> str:
    """Text of others that is safe to print or log: no line breaks and nothing that a terminal would obey."""
    flat = " ".join(str(text).split())
    if max_chars is not None and len(flat) > max_chars:
        flat = f"{flat[: max_chars - 1]}…"
    return flat if flat.isprintable() else "".join(char if char.isprintable() else "�" for char in flat)


class JoulieError(Exception):
    """Base of every error that is reported as one line instead of a traceback."""

    exit_code = 1


class InputError(JoulieError):
    """A file, an object, a setting or an argument is wrong: exit code 2."""

    exit_code = 2


class SettingError(InputError):
    """An environment variable holds something that cannot be used."""

    def __init__(self, variable: str, value: str, allowed: str) -> None:
        # Mistyped, an address with a password need not look like one: nothing before an @ is shown.
        _, at, rest = value.rpartition("@")
        shown = without_credentials(f"…@{rest}" if at else value)
        super().__init__(f"{variable}={shown!r} cannot be used: allowed is {allowed}")
        self.variable = variable


class PluginError(JoulieError):
    """A policy or cooling model from outside broke its contract."""
