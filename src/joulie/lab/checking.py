"""What a setup names is there: settings, policy, scheduler, hardware. Said before anything runs, by file and key."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from math import isfinite
from typing import Any

import msgspec

from joulie import plugins
from joulie.errors import InputError, SettingError
from joulie.lab.capacity import kinds
from joulie.lab.cluster import MOST_NODES
from joulie.lab.ranking import BUILT_IN
from joulie.lab.setup import LAB_POLICIES, RunSetup
from joulie.lab.weather import COLDEST_C, HOTTEST_C
from joulie.settings import COMPONENTS, ExtenderSettings, OperatorSettings, describe, load
from joulie.sources.catalogue_file import read_catalogue

# Beyond these a run would mean nothing, or never end.
_LIMITS: dict[str, tuple[float, float]] = {
    "cluster.nodes_per_rack": (1, 10_000),
    "cluster.racks_per_zone": (1, 10_000),
    "weather.mean_c": (COLDEST_C, HOTTEST_C),
    "plant.step_s": (0.01, 3600),
    "queue.depth": (1, 1_000_000),
    "record_s": (0.1, 366 * 86_400),
}


def check_setup(setup: RunSetup, place: str) -> None:
    """InputError names what is wrong; `place` is the file, and the variant where there are some."""
    try:
        _check_numbers(setup)
        _check_settings(setup.environment)
        _check_one_of("policy.name", setup.policy.name, [*LAB_POLICIES, *plugins.policy_names()])
        _check_one_of("scheduler", setup.scheduler, BUILT_IN)
        kinds(setup.cluster, read_catalogue(str(setup.settings.get("HARDWARE_CATALOG_PATH", ""))))
    except SettingError as error:
        raise InputError(f"{place}: settings.{error}") from None
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def _check_numbers(setup: RunSetup) -> None:
    """Finite, and within limits."""
    for key, value in _numbers(msgspec.to_builtins(setup)):
        if key.startswith("settings."):
            continue  # which have limits of their own
        if not isfinite(value):
            raise InputError(f"{key}: {value} is no finite number")
        least, most = _LIMITS.get(key, (value, value))
        if not least <= value <= most:
            raise InputError(f"{key}: {value:g} is not from {least:g} to {most:g}")
    total = sum(group.count for group in setup.cluster.nodes)
    if total > MOST_NODES:
        raise InputError(f"cluster.nodes: {total} nodes; a run has 1 to {MOST_NODES:,}")


def _numbers(content: dict[str, Any], below: str = "") -> Iterator[tuple[str, float]]:
    for name, value in content.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{below}{name}.")
        elif isinstance(value, int | float):
            yield below + name, value


def _check_settings(env: dict[str, str]) -> None:
    """Names and values as operator and extender would take them."""
    known = {one.variable for name in ("operator", "extender") for one in describe(COMPONENTS[name], {})}
    for variable in env:
        if variable == "POLICY_TYPE":
            raise InputError("settings.POLICY_TYPE: stands under policy.name here")
        if variable not in known:
            close = get_close_matches(variable, known, n=1)
            raise InputError(f"settings.{variable}: is no setting{f'; {close[0]}?' if close else ''}")
    load(OperatorSettings, env)
    load(ExtenderSettings, env)


def _check_one_of(key: str, name: str, known: list[str] | tuple[str, ...]) -> None:
    if ":" not in name and name not in known:
        raise InputError(f"{key}: {name!r} is none of {', '.join(known)}, nor a `module:object`")
