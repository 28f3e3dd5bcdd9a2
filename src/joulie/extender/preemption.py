"""What kube-scheduler asks before it displaces pods for another one."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct, field

from joulie.extender.requests import BadRequestError, read_pod, typed
from joulie.model.snapshot import Pod

_ABSENT = Raw(b"null")


class _Meta(Struct):
    uid: str = ""


class _VictimPod(Struct):
    metadata: _Meta


class _Victims(Struct):
    pods_capital: list[_VictimPod] | None = field(name="Pods", default=None)
    pods_lower: list[_VictimPod] | None = field(name="pods", default=None)
    violations_capital: int = field(name="NumPDBViolations", default=0)
    violations_lower: int = field(name="numPDBViolations", default=0)


class _Body(Struct):
    """Victims by their UIDs where the extender caches nodes, else as whole pods."""

    pod_capital: Raw = field(name="Pod", default=_ABSENT)
    pod_lower: Raw = field(name="pod", default=_ABSENT)
    metas_capital: dict[str, Raw] | None = field(name="NodeNameToMetaVictims", default=None)
    metas_lower: dict[str, Raw] | None = field(name="nodeNameToMetaVictims", default=None)
    wholes_capital: dict[str, _Victims] | None = field(name="NodeNameToVictims", default=None)
    wholes_lower: dict[str, _Victims] | None = field(name="nodeNameToVictims", default=None)


_BODY = msgspec.json.Decoder(_Body)


def read_preemption(body: bytes) -> tuple[Pod, dict[str, Raw]]:
    """The pod that wants room, and for each node whom it would displace, in the form of the answer."""
    asked = typed(_BODY, body, "the request")
    raw = asked.pod_lower if bytes(asked.pod_capital) == b"null" else asked.pod_capital
    pod = read_pod(None if bytes(raw) == b"null" else raw, "Pod")
    metas = asked.metas_lower if asked.metas_capital is None else asked.metas_capital
    if metas is not None:
        return pod, metas
    wholes = asked.wholes_lower if asked.wholes_capital is None else asked.wholes_capital
    if wholes is None:
        raise BadRequestError("NodeNameToMetaVictims and NodeNameToVictims are both missing")
    return pod, {name: _by_uid(victims) for name, victims in wholes.items()}


def _by_uid(victims: _Victims) -> Raw:
    pods = [{"UID": pod.metadata.uid} for pod in victims.pods_capital or victims.pods_lower or ()]
    violations = victims.violations_capital or victims.violations_lower
    return Raw(msgspec.json.encode({"Pods": pods, "NumPDBViolations": violations}))
