"""Schedulers and policies that somebody wrote: `module:object`, in a file beside the experiment's or installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from joulie.control.policies.interface import Policy
from joulie.errors import PluginError
from joulie.plugins import POLICY_GROUP


@contextmanager
def importable(folder: str) -> Iterator[None]:
    """Modules in the folder of an experiment are found first; nothing happens without one."""
    if folder:
        sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder:
            sys.path.remove(folder)


@contextmanager
def contained() -> Iterator[None]:
    """Code from outside neither writes where results go nor ends the program."""
    try:
        with redirect_stdout(sys.stderr):
            yield
    except SystemExit as error:
        raise PluginError(f"a policy or scheduler ended the program with exit code {error.code}") from error


def given_policy(name: str) -> Policy | None:
    """The policy that `module:object` names; None for a registered name."""
    if ":" not in name:
        return None
    found = given("policy", name, "plan")
    if not isinstance(getattr(found, "name", None), str):
        raise PluginError(f"policy {name} has no `name`, a text that tells it from others")
    return cast(Policy, found)


def given(what: str, name: str, method: str) -> Any:
    """The object that `module:object` names, a class called without arguments; it must have the method."""
    module, _, attribute = name.partition(":")
    try:
        found: Any = getattr(import_module(module), attribute)
        found = found() if isinstance(found, type) else found
    except Exception as error:  # code from outside may raise anything
        reason = " ".join(str(error).split())
        raise PluginError(f"{what} {name} cannot be loaded: {type(error).__name__}: {reason}") from error
    if not callable(getattr(found, method, None)):
        raise PluginError(f"{what} {name} has no method `{method}`")
    return found


def source_of(name: str, folder: str) -> Path | None:
    """The file with the code of a scheduler or policy; None for what is Joulie's own, or cannot be found."""
    module, colon, _ = name.partition(":")
    if not colon:
        registered = [entry.module for entry in entry_points(group=POLICY_GROUP, name=name)]
        module = registered[0] if registered else "joulie"
    if module.split(".")[0] == "joulie":
        return None
    with importable(folder):
        try:
            found = find_spec(module)
        except (ImportError, ValueError):
            return None  # whoever runs it says so
    return Path(found.origin) if found and found.origin else None
