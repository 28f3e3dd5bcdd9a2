"""The settings of each component, for the Helm chart: what may be set where, and how a template can check it.

Helm templates can compare values with a pattern, a range or a list only. These are derived here from what each setting
allows, so that an invalid value is rejected before it reaches a cluster, with the same message.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from joulie.settings import COMPONENTS, SettingDescription, describe
from joulie.settings.parsing import LABEL_KEY, OWN_LABEL_KEY

# Settings that the chart derives from its own values or from the pod, with the reason or the value to set instead.
OWNED = {
    "AGENT_MODE": "set agent.mode",
    "EXTENDER_ADDR": "the Service of the extender depends on it",
    "EXTENDER_TLS_CERT_FILE": "set extender.tls.secretName",
    "EXTENDER_TLS_KEY_FILE": "set extender.tls.secretName",
    "HARDWARE_CATALOG_PATH": "set hardwareCatalogue",
    "HOST_SYS_PATH": "the chart mounts the host's /sys there",
    "METRICS_ADDR": "probes and monitoring depend on it",
    "NODE_NAME": "it is set to the pod's node",
    "NODE_SELECTOR": "set managedNodes",
    "POD_NAME": "it is set to the pod's name",
    "POD_NAMESPACE": "it is set to the pod's namespace",
    "PODRESOURCES_SOCKET": "set agent.podResources.enabled",
    "POOL_NODE_SELECTOR": "set managedNodes",
    "POOL_SHARDS": "set agent.pool.replicas",
    "POOL_SHARD_ID": "it is set to the pod's ordinal",
    "SIMULATE_ONLY": "set dryRun",
    "SIM_ADDR": "the Service of the simulator depends on it",
    "STATE_DIR": "the chart mounts a host folder or a volume there",
    "WATTS_RESOURCE": "set wattsResource.enabled",
}
# Components with different values of these would work against each other.
ONLY_SHARED = frozenset({"ENABLE_FACILITY_METRICS", "POWER_PROFILE_LABEL", "RESERVED_LABEL_KEY"})
# Means something different in each component, so it cannot be shared.
NOT_SHARED = frozenset({"RECONCILE_INTERVAL"})

_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_DURATION = r"^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"
_WITH_RANGE = re.compile(r"(a|a whole) number (from|above) (\S+) (?:to|up to) (\S+)")
_LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
_PATTERNS = {
    "a duration such as 90s, 5m or 1h30m, above 0 up to a year": _DURATION,
    "a duration such as 90s, 5m or 1h30m": f"{_DURATION}|^0$",
    "true or false": r"^(?i:true|false|t|f|1|0)$",
    LABEL_KEY.allowed: _LABEL_KEY,
    OWN_LABEL_KEY.allowed: _LABEL_KEY,  # what else it must not be, templates/admission.yaml says
    "an address such as :8081 or 127.0.0.1:8081": r"^([^:\s/]*|\[[0-9a-fA-F:]+\]):[0-9]{1,5}$",
    "a URL starting with http:// or https://, or nothing": r"^(https?://[^\s/]+\S*)?$",
    "a size such as 128Mi or 20M, from 1Ki to 4Gi": r"^[0-9.]+([eE][0-9]+|[kMGT]i?|Ki)?$",
}


def settings_json() -> str:
    """`files/settings.json` of the chart: component → variable → what is allowed and how it is checked."""
    return json.dumps(chart_settings(), indent=2, ensure_ascii=False) + "\n"


def chart_settings() -> dict[str, dict[str, dict[str, Any]]]:
    """All valid keys of `settings` (here `shared`) and of `<component>.settings`."""
    own = {name: {one.variable: one for one in describe(kind, {})} for name, kind in COMPONENTS.items()}
    uses = Counter(variable for settings in own.values() for variable in settings)
    # Described as the first component that has it does, which is the operator.
    everyones = {variable: one for settings in reversed(own.values()) for variable, one in settings.items()}
    shared = {
        variable: one
        for variable, one in everyones.items()
        if (uses[variable] > 1 and variable not in OWNED and variable not in NOT_SHARED) or variable in ONLY_SHARED
    }
    return {
        name: {variable: _entry(one, name) for variable, one in sorted(settings.items())}
        for name, settings in [("shared", shared), *own.items()]
    }


def _entry(one: SettingDescription, where: str) -> dict[str, Any]:
    if one.variable in OWNED:
        return {"instead": OWNED[one.variable]}
    if one.variable in ONLY_SHARED and where != "shared":
        return {"instead": f"set settings.{one.variable}, for all components"}
    return {"meaning": one.meaning, "default": one.default, "allowed": one.allowed, **check_of(one.allowed)}


def check_of(allowed: str) -> dict[str, Any]:
    """How a template can check a value; empty if only the process itself can."""
    if allowed in _PATTERNS:
        return {"pattern": _PATTERNS[allowed]}
    if allowed.startswith("one of "):
        return {"choices": allowed.removeprefix("one of ").split(", ")}
    if found := _WITH_RANGE.fullmatch(allowed):
        kind, start, low, high = found.groups()
        pattern = r"^[+-]?[0-9]{1,18}$" if kind == "a whole" else _NUMBER
        return {"pattern": pattern, "low": float(low), "high": float(high), "above": start == "above"}
    return {}
