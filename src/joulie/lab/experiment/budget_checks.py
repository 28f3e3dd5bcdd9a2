"""What an experiment says about power budgets can be run: fields, groups, time zones, and limits that can be held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from math import isfinite
from typing import Any

import msgspec
import numpy as np

from joulie.catalogue.lookup import Catalogue
from joulie.control.budget.envelopes import envelope_of
from joulie.errors import InputError
from joulie.lab.model.setup import RunSetup
from joulie.lab.simulation.budgets.grouping import Grouping
from joulie.lab.simulation.budgets.view import Ranges
from joulie.lab.simulation.cluster import lab_cluster
from joulie.lab.simulation.steering import clock_at_start_s, lab_settings
from joulie.model.api.budget import PowerBudgetSpec

# What reads numbers from outside, of which there are none in a run.
ONLY_LIVE = ("signal", "meter")


def refuse_unknown_fields(spec: object, place: str) -> None:
    """Objects in a cluster may have fields that we do not know; in an experiment they are misspelt."""
    for key, known in _unknown(spec, msgspec.inspect.type_info(PowerBudgetSpec), place):
        close = get_close_matches(key.rpartition(".")[2], known, n=1)
        raise InputError(f"{key}: is not a field of a power budget{f'; {close[0]}?' if close else ''}")


def check_budgets(setup: RunSetup, catalogue: Catalogue) -> None:
    """InputError names the field."""
    for name, spec in setup.budgets.items():
        for field in ONLY_LIVE:
            if getattr(spec, field) is not None:
                raise InputError(f"budgets.{name}.{field}: there is nothing to query in the lab; use windows")
        for key, value in _numbers(msgspec.to_builtins(spec), f"budgets.{name}"):
            if not isfinite(value):
                raise InputError(f"{key}: {value} is not a finite number")
    if setup.budgets and setup.sharing.rule == "reactive" and setup.telemetry.source == "static":
        raise InputError('sharing.rule: reactive needs readings, and telemetry.source is "static"')
    if setup.budgets:
        _check_groups(setup, catalogue)


def _check_groups(setup: RunSetup, catalogue: Catalogue) -> None:
    """Every group has nodes, and a limit that they can be held to."""
    cluster = lab_cluster(setup.cluster, catalogue, lab_settings(setup).operator.decision.hardware)
    grouping = Grouping(setup, cluster, clock_at_start_s(setup))
    if grouping.problems:
        raise InputError(grouping.problems[0])
    pairs = zip(cluster.nodes.values(), cluster.recognised, strict=True)
    ranges = Ranges.of([envelope_of(node, machine) for node, machine in pairs], grouping.rest_follows())
    floor_w = (ranges.floor * ranges.per_watt).sum(axis=1)
    lowest_w = np.array([group.limit.lowest_w for group in grouping.groups])
    enforced = grouping.enforced(lowest_w, ranges.rest_w)
    missing_w = enforced.membership.sums(floor_w) - enforced.room_w
    if (missing_w > 0).any():
        worst = int(np.argmax(missing_w))
        group = next(each for each in grouping.groups if each.name == enforced.names[worst])
        least_w = group.limit.limit_w + float(missing_w[worst]) * group.limit.share
        which = f" of group {group.value}" if group.value else ""
        raise InputError(
            f"budgets.{group.budget}: the limit{which} of {group.limit.lowest_w:,.0f} W is below "
            f"{least_w:,.0f} W, the least that its {len(group.nodes)} nodes can be held to"
        )


def _unknown(content: object, kind: Any, key: str) -> Iterator[tuple[str, list[str]]]:
    """Keys that the type does not have, and those that it has."""
    if isinstance(kind, msgspec.inspect.Metadata):
        yield from _unknown(content, kind.type, key)
    elif isinstance(kind, msgspec.inspect.UnionType):
        for one in kind.types:
            yield from _unknown(content, one, key)
    elif isinstance(kind, msgspec.inspect.ListType) and isinstance(content, list):
        for place, one in enumerate(content):
            yield from _unknown(one, kind.item_type, f"{key}[{place}]")
    elif isinstance(kind, msgspec.inspect.StructType) and isinstance(content, Mapping):
        fields = {field.encode_name: field.type for field in kind.fields}
        for name, value in content.items():
            if name not in fields:
                yield f"{key}.{name}", list(fields)
            else:
                yield from _unknown(value, fields[name], f"{key}.{name}")


def _numbers(content: object, key: str) -> Iterator[tuple[str, float]]:
    if isinstance(content, Mapping):
        for name, value in content.items():
            yield from _numbers(value, f"{key}.{name}")
    elif isinstance(content, list):
        for place, value in enumerate(content):
            yield from _numbers(value, f"{key}[{place}]")
    elif isinstance(content, int | float) and not isinstance(content, bool):
        yield key, content
