"""Policies and cooling models by name, found through entry points.

May import: `control` and everything below it. The built-in ones are registered like those of other packages, so nothing
here knows their names. Decisions never look for a plug-in themselves: shells call this and hand in what it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from joulie.errors import JoulieError, PluginError, SettingError

if TYPE_CHECKING:  # a name is completed in a shell long before numpy, or even importlib.metadata, is loaded
    from importlib.metadata import EntryPoint

    from joulie.control.policies.interface import Policy
    from joulie.physics.cooling import CoolingModel
    from joulie.settings import TwinSettings

POLICY_GROUP = "joulie.policies"
COOLING_GROUP = "joulie.cooling"


def policy_names() -> list[str]:
    return _names(POLICY_GROUP)


def cooling_names() -> list[str]:
    return _names(COOLING_GROUP)


def policy(name: str) -> Policy:
    """The policy that `POLICY_TYPE` names; only this one is loaded. A class is called without arguments."""
    entry = _entry(POLICY_GROUP, name, "POLICY_TYPE")
    what = f"policy {name} ({entry.value})"
    found = _attempt(f"{what} cannot be loaded", entry.load)
    if isinstance(found, type):
        found = _attempt(f"{what} cannot be made", found)
    return cast("Policy", _checked(found, what, "plan"))


def cooling(name: str, settings: TwinSettings) -> CoolingModel:
    """The cooling model that `COOLING_MODEL` names; its entry is called with the twin's settings."""
    entry = _entry(COOLING_GROUP, name, "COOLING_MODEL")
    what = f"cooling model {name} ({entry.value})"
    make = _attempt(f"{what} cannot be loaded", entry.load)
    if not callable(make):
        raise PluginError(f"{what} is not a class or function that takes the twin's settings")
    found = _attempt(f"{what} cannot be made", lambda: make(settings))
    return cast("CoolingModel", _checked(found, what, "stress"))


def _names(group: str) -> list[str]:
    from importlib.metadata import entry_points

    return sorted({entry.name for entry in entry_points(group=group)})


def _entry(group: str, name: str, variable: str) -> EntryPoint:
    from importlib.metadata import entry_points

    found = {entry.value: entry for entry in entry_points(group=group, name=name)}
    if not found:
        raise SettingError(variable, name, f"one of {', '.join(_names(group))}")
    if len(found) > 1:  # which of them would plan a data centre must not depend on the order of a folder
        raise PluginError(f"{variable}={name!r} is provided more than once: {', '.join(sorted(found))}")
    return next(iter(found.values()))


def _attempt(failure: str, action: Callable[[], Any]) -> Any:
    """What the action returns. What a plug-in raises is its fault and is said in one line; our own errors pass."""
    try:
        return action()
    except JoulieError:
        raise
    except Exception as error:  # a plug-in may raise anything
        raise PluginError(f"{failure}: {type(error).__name__}: {' '.join(str(error).split())}") from error


def _checked(found: Any, what: str, method: str) -> Any:
    name = getattr(found, "name", None)
    if not isinstance(name, str) or not name:
        raise PluginError(f"{what} has no name: give it an attribute `name` that is a text")
    if not callable(getattr(found, method, None)):
        raise PluginError(f"{what} has no method `{method}`")
    return found
