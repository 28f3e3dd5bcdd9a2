"""The errors a person can act on. Each is one line that names what is wrong; nothing here imports anything."""

from __future__ import annotations


class JoulieError(Exception):
    """Base of every error that is reported as one line instead of a traceback."""

    exit_code = 1


class InputError(JoulieError):
    """A file, an object, a setting or an argument is wrong: exit code 2."""

    exit_code = 2


class SettingError(InputError):
    """An environment variable holds something that cannot be used."""

    def __init__(self, variable: str, value: str, allowed: str) -> None:
        super().__init__(f"{variable}={value!r} cannot be used: allowed is {allowed}")
        self.variable = variable


class PluginError(JoulieError):
    """A policy or cooling model from outside broke its contract."""
