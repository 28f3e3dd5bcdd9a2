"""Watts as a resource on a real API server: the policies of `deploy/`, namespaces that opted in, pods and nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from joulie.model.quantity import parse_quantity

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

Body = dict[str, Any]

FOLDER = Path(__file__).parents[3] / "deploy" / "admission"
WATTS = "joulie.io/watts"
OWN = "joulie-system"
OPTED_IN, OTHERS = "team-watts", "team-free"
PATIENCE_S = 60.0
# A core draws 10 W and a GPU 500 W here, so that sums are easy.
TABLE = "{'minimum': 20.0, 'cpu': 10.0, 'nvidia.com/gpu': 500.0}"


def manifests(table: str = TABLE) -> list[Body]:
    """The shipped ones, with this table."""
    found: list[Body] = list(yaml.safe_load_all((FOLDER / "watts.yaml").read_text()))
    (variable,) = (one for one in found[0]["spec"]["variables"] if one["name"] == "table")
    variable["expression"] = table
    return found


def namespace(name: str, **labels: str) -> Body:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def namespaces() -> list[Body]:
    """Those that must not take part have the label, too."""
    label = {WATTS: "enabled"}
    return [namespace(OPTED_IN, **label), namespace(OTHERS), namespace(OWN, **label), namespace("kube-system", **label)]


def container(cpu: str = "", gpus: str = "", watts: str = "", name: str = "work") -> Body:
    asked = {"cpu": cpu, "nvidia.com/gpu": gpus, WATTS: watts}
    requests = {key: value for key, value in asked.items() if value}
    limits = {key: value for key, value in requests.items() if "/" in key}
    return {"name": name, "image": "work", "resources": {"requests": requests, "limits": limits}}


def pod(*containers: Body, name: str = "tried", meta: Body | None = None, **spec: Any) -> Body:
    body = {"containers": list(containers) or [container("1")], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **(meta or {})}, "spec": body}


def admitted(plane: ControlPlane, body: Body, where: str = OPTED_IN) -> Body:
    stored: Body = plane.api.post(f"/api/v1/namespaces/{where}/pods?dryRun=All", body)
    return stored


def watts_of(stored: Body, part: str = "containers") -> list[int]:
    """Of each container; requests and limits are the same."""
    found = []
    for one in stored["spec"][part]:
        asked = one.get("resources") or {}
        requests, limits = ((asked.get(side) or {}).get(WATTS) for side in ("requests", "limits"))
        assert requests == limits
        found.append(int(parse_quantity(requests or 0)))
    return found


@contextmanager
def policies_installed(
    plane: ControlPlane, chosen: list[Body] | None = None, *, refusing: bool = False
) -> Iterator[None]:
    """In this block the policies act (or refuse everything); after it, they do not any more: the server is shared."""
    chosen = manifests() if chosen is None else chosen
    plane.apply(namespaces())
    plane.apply(chosen)
    try:
        wait_until(lambda: _reaction(plane) == ("refuses" if refusing else "gives watts"), "the policies act")
        yield
    finally:
        for one in chosen:
            kind = plane.api.resource_path(one["apiVersion"], one["kind"])
            plane.api.delete(f"{kind.prefix}/{kind.plural}/{one['metadata']['name']}")
        wait_until(lambda: _reaction(plane) == "nothing", "the policies are gone")


def _reaction(plane: ControlPlane) -> str:
    """To a pod, and to one with an annotation that has to be refused."""
    from testbed.api import ApiError

    try:
        given = any(watts_of(admitted(plane, pod())))
    except ApiError:
        return "refuses"
    with suppress(ApiError):
        admitted(plane, pod(meta={"annotations": {WATTS: "many"}}))
        return "half of them" if given else "nothing"
    return "gives watts" if given else "half of them"


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = PATIENCE_S) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"after {timeout_s:g} s still not: {what}")
        time.sleep(0.1)
