"""The settings of each component, for the Helm chart: what may be set where, and how a template can check it.

Helm refuses a value only by what its template language can compare: a pattern, a range, a list. This is derived here
from what each setting says it allows, so that a wrong value is refused before it reaches a cluster, in the same words.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from joulie.settings import COMPONENTS, Described, describe

# What the chart sets from its own values or takes from the pod; the sentence says where it belongs instead.
OWNED = {
    "AGENT_MODE": "set agent.mode",
    "EXTENDER_ADDR": "the Service of the extender counts on it",
    "EXTENDER_TLS_CERT_FILE": "set extender.tls.secretName",
    "EXTENDER_TLS_KEY_FILE": "set extender.tls.secretName",
    "HARDWARE_CATALOG_PATH": "set hardwareCatalogue",
    "HOST_SYS_PATH": "the chart mounts the host's /sys there",
    "METRICS_ADDR": "probes and monitoring count on it",
    "NODE_NAME": "the pod's own node is taken",
    "NODE_SELECTOR": "set managedNodes",
    "POD_NAME": "the pod's own name is taken",
    "POOL_NODE_SELECTOR": "set managedNodes",
    "POOL_SHARDS": "set agent.pool.replicas",
    "POOL_SHARD_ID": "the ordinal of the pod is taken",
    "SIMULATE_ONLY": "set dryRun",
    "SIM_ADDR": "the Service of the simulator counts on it",
    "STATE_DIR": "the chart mounts a folder of the host or a volume there",
}
# Components that disagree on these would work against each other.
ONLY_SHARED = frozenset({"POWER_PROFILE_LABEL", "RESERVED_LABEL_KEY"})
# Means something else in each component, so it cannot be shared.
NOT_SHARED = frozenset({"RECONCILE_INTERVAL"})

_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_DURATION = r"^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"
_WITH_RANGE = re.compile(r"(a|a whole) number (from|above) (\S+) (?:to|up to) (\S+)")
_PATTERNS = {
    "a duration such as 90s, 5m or 1h30m, above 0 up to a year": _DURATION,
    "a duration such as 90s, 5m or 1h30m": f"{_DURATION}|^0$",
    "true or false": r"^(?i:true|false|t|f|1|0)$",
    "a label key such as joulie.io/reserved": (
        r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
    ),
    "an address such as :8081 or 127.0.0.1:8081": r"^([^:\s/]*|\[[0-9a-fA-F:]+\]):[0-9]{1,5}$",
    "a URL starting with http:// or https://, or nothing": r"^(https?://[^\s/]+\S*)?$",
    "a size such as 128Mi or 20M, from 1Ki to 4Gi": r"^[0-9.]+([eE][0-9]+|[kMGT]i?|Ki)?$",
}


def settings_json() -> str:
    """`files/settings.json` of the chart: component → variable → what is allowed and how that is checked."""
    return json.dumps(chart_settings(), indent=2, ensure_ascii=False) + "\n"


def chart_settings() -> dict[str, dict[str, dict[str, Any]]]:
    """Everything that can stand under `settings` and `<component>.settings`; `shared` is the former."""
    own = {name: {one.variable: one for one in describe(kind, {})} for name, kind in COMPONENTS.items()}
    uses = Counter(variable for settings in own.values() for variable in settings)
    # In the words of the first that has it: the operator decides.
    everyones = {variable: one for settings in reversed(own.values()) for variable, one in settings.items()}
    shared = {
        variable: one
        for variable, one in everyones.items()
        if uses[variable] > 1 and variable not in OWNED and variable not in NOT_SHARED
    }
    return {
        name: {variable: _entry(one, name) for variable, one in sorted(settings.items())}
        for name, settings in [("shared", shared), *own.items()]
    }


def _entry(one: Described, where: str) -> dict[str, Any]:
    if one.variable in OWNED:
        return {"instead": OWNED[one.variable]}
    if one.variable in ONLY_SHARED and where != "shared":
        return {"instead": f"set settings.{one.variable}, for all components"}
    return {"meaning": one.meaning, "default": one.default, "allowed": one.allowed, **check_of(one.allowed)}


def check_of(allowed: str) -> dict[str, Any]:
    """How text is compared with what is allowed; nothing where only the process itself can tell."""
    if allowed in _PATTERNS:
        return {"pattern": _PATTERNS[allowed]}
    if allowed.startswith("one of "):
        return {"choices": allowed.removeprefix("one of ").split(", ")}
    if found := _WITH_RANGE.fullmatch(allowed):
        kind, start, low, high = found.groups()
        pattern = r"^[+-]?[0-9]{1,18}$" if kind == "a whole" else _NUMBER
        return {"pattern": pattern, "low": float(low), "high": float(high), "above": start == "above"}
    return {}
