"""What a setup names is there: settings, policy, scheduler, hardware. Said before anything runs, by file and key."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from math import isfinite
from typing import Any

import msgspec
from msgspec import structs

from joulie import plugins
from joulie.control.budget.counting import SETTLE_S
from joulie.errors import InputError, SettingError
from joulie.lab.analysis.capacity import kinds
from joulie.lab.experiment.budget_checks import check_budgets
from joulie.lab.model.setup import LAB_POLICIES, RunSetup
from joulie.lab.simulation.cluster import MAX_NODES
from joulie.lab.simulation.custom_ranking import BUILT_IN
from joulie.lab.simulation.weather import COLDEST_C, HOTTEST_C
from joulie.settings import COMPONENTS, ExtenderSettings, OperatorSettings, describe, load
from joulie.sources.catalogue_file import read_catalogue

DAY_S = 86_400
MIN_INTERVAL_S = 1.0  # between two decisions

# Beyond these a run would mean nothing, or never end.
LIMITS: dict[str, tuple[float, float]] = {
    "cluster.nodes.count": (1, MAX_NODES),
    "cluster.nodes.sockets": (1, 64),
    "cluster.nodes.gpus": (0, 64),
    "cluster.nodes_per_rack": (1, 10_000),
    "cluster.racks_per_zone": (1, 10_000),
    "weather.mean_c": (COLDEST_C, HOTTEST_C),
    "weather.swing_c": (0, 40),
    "weather.noise_c": (0, 20),
    "weather.start_hour": (0, 24),
    "plant.step_s": (0.01, 3600),
    "plant.cooling_spare": (0.01, 100),
    "plant.sleep_after_s": (0, 366 * DAY_S),
    "plant.sleep_w": (0, 1000),
    "plant.wake_s": (0, DAY_S),
    "plant.wake_energy_j": (0, 1e8),
    "telemetry.lag_s": (0, DAY_S),
    "telemetry.noise_pct": (0, 100),
    "queue.depth": (1, 1_000_000),
    "queue.estimate_factor": (0.01, 10_000),
    "policy.cpu_cap_pct": (1, 100),
    "policy.gpu_cap_pct": (1, 100),
    "sharing.interval_s": (SETTLE_S, 3600),  # a cut is confirmed by the next turn
    "record_s": (0.1, 366 * DAY_S),
    "longest_factor": (1, 10_000),
}


def check_setup(setup: RunSetup, place: str) -> None:
    """InputError names what is wrong; `place` is the file, and the variant where there are some."""
    try:
        _check_numbers(setup)
        _check_settings(setup.environment)
        _check_one_of("policy.name", setup.policy.name, [*LAB_POLICIES, *plugins.policy_names()])
        _check_one_of("scheduler", setup.scheduler, BUILT_IN)
        catalogue = read_catalogue(str(setup.settings.get("HARDWARE_CATALOG_PATH", "")))
        kinds(setup.cluster, catalogue)
        check_budgets(setup, catalogue)
    except SettingError as error:
        raise InputError(f"{place}: settings.{error}") from None
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def _check_numbers(setup: RunSetup) -> None:
    """Finite, and within limits."""
    total = sum(group.count for group in setup.cluster.nodes)
    if total > MAX_NODES:
        raise InputError(f"cluster.nodes: {total} nodes; a run has 1 to {MAX_NODES:,}")
    for key, name, value in _numbers(msgspec.to_builtins(structs.replace(setup, settings={}, budgets={}))):
        if not isfinite(value):
            raise InputError(f"{key}: {value} is not a finite number")
        least, most = LIMITS[name]
        if not least <= value <= most:
            raise InputError(f"{key}: {value:g} is not from {least:g} to {most:g}")


def _numbers(content: dict[str, Any], key: str = "", name: str = "") -> Iterator[tuple[str, str, float]]:
    """Keys as they stand in the file, their names without places in lists, and values."""
    for part, value in content.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{key}{part}.", f"{name}{part}.")
        elif isinstance(value, list):
            for place, one in enumerate(value):
                yield from _numbers(one, f"{key}{part}[{place}].", f"{name}{part}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield key + part, name + part, value


def _check_settings(env: dict[str, str]) -> None:
    """Names and values as operator and extender would take them."""
    known = {one.variable for name in ("operator", "extender") for one in describe(COMPONENTS[name], {})}
    for variable in env:
        if variable == "POLICY_TYPE":
            raise InputError("settings.POLICY_TYPE: stands under policy.name here")
        if variable not in known:
            close = get_close_matches(variable, known, n=1)
            raise InputError(f"settings.{variable}: is not a setting{f'; {close[0]}?' if close else ''}")
    interval_s = load(OperatorSettings, env).decision.plan.reconcile_interval_s
    if interval_s < MIN_INTERVAL_S:
        raise InputError(
            f"settings.RECONCILE_INTERVAL: {interval_s:g} s is below {MIN_INTERVAL_S:g} s, the least in the lab: "
            "every decision of all simulated time is computed"
        )
    load(ExtenderSettings, env)


def _check_one_of(key: str, name: str, known: list[str] | tuple[str, ...]) -> None:
    if ":" not in name and name not in known:
        raise InputError(f"{key}: {name!r} is none of {', '.join(known)}, nor a `module:object`")
