"""Preempt requests: what kube-scheduler sends before it evicts pods for another one."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct, field

from joulie.extender.requests import BadRequestError, check_braces, check_count, read_pod, typed
from joulie.model.snapshot import Pod

_ABSENT = Raw(b"null")
# Victims are few on most nodes, and nodes a tenth of the cluster; whole pods have some dozen objects each.
MIN_BRACES, BRACES_PER_NODE = 1 << 17, 32


class _Meta(Struct):
    uid: str = ""


class _VictimPod(Struct):
    metadata: _Meta


class _Victims(Struct):
    pods_capital: list[_VictimPod] | None = field(name="Pods", default=None)
    pods_lower: list[_VictimPod] | None = field(name="pods", default=None)
    violations_capital: int = field(name="NumPDBViolations", default=0)
    violations_lower: int = field(name="numPDBViolations", default=0)


class _Object(Struct, gc=False):
    """Any content; each object has a brace of its own."""


class _Body(Struct):
    """Victims by UID if the extender is nodeCacheCapable, else as whole pods."""

    pod_capital: Raw = field(name="Pod", default=_ABSENT)
    pod_lower: Raw = field(name="pod", default=_ABSENT)
    metas_capital: dict[str, _Object] | None = field(name="NodeNameToMetaVictims", default=None)
    metas_lower: dict[str, _Object] | None = field(name="nodeNameToMetaVictims", default=None)
    wholes_capital: dict[str, _Victims] | None = field(name="NodeNameToVictims", default=None)
    wholes_lower: dict[str, _Victims] | None = field(name="nodeNameToVictims", default=None)


class _Metas(Struct):
    """Decoded once their number is known, as bytes."""

    metas_capital: dict[str, Raw] | None = field(name="NodeNameToMetaVictims", default=None)
    metas_lower: dict[str, Raw] | None = field(name="nodeNameToMetaVictims", default=None)


_BODY = msgspec.json.Decoder(_Body)
_METAS = msgspec.json.Decoder(_Metas)


def read_preemption(body: bytes, max_nodes: int) -> tuple[Pod, dict[str, Raw]]:
    """The preemptor, and for each node its victims, in the form of the response."""
    check_braces(body, MIN_BRACES + BRACES_PER_NODE * max_nodes)
    asked = typed(_BODY, body, "the request")
    raw = asked.pod_lower if bytes(asked.pod_capital) == b"null" else asked.pod_capital
    pod = read_pod(None if bytes(raw) == b"null" else raw, "Pod")
    metas = asked.metas_lower if asked.metas_capital is None else asked.metas_capital
    if metas is not None:
        check_count(len(metas), max_nodes)
        kept = typed(_METAS, body, "the request")
        return pod, (kept.metas_lower if kept.metas_capital is None else kept.metas_capital) or {}
    wholes = asked.wholes_lower if asked.wholes_capital is None else asked.wholes_capital
    if wholes is None:
        raise BadRequestError("NodeNameToMetaVictims and NodeNameToVictims are both missing")
    check_count(len(wholes), max_nodes)
    return pod, {name: _by_uid(victims) for name, victims in wholes.items()}


def _by_uid(victims: _Victims) -> Raw:
    pods = [{"UID": pod.metadata.uid} for pod in victims.pods_capital or victims.pods_lower or ()]
    violations = victims.violations_capital or victims.violations_lower
    return Raw(msgspec.json.encode({"Pods": pods, "NumPDBViolations": violations}))
