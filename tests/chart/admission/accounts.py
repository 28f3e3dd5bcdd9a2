"""Accounts of the chart with their tokens, and a scene of two nodes on which to try what each may write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from joulie.cluster.node_events import EventDetails, node_event
from tests.chart.charts import Manifest
from tests.extender.scheduler.scheduling import node, twin
from tests.support.rights import NAMESPACE, Rights

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

JOULIE = "/apis/joulie.io/v1alpha1"
EVENTS = "/api/v1/namespaces/default/events"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
APPLIED = {"cpu": {"backend": "rapl", "result": "applied"}}
NOT_OF_A_POD = "an agent's token has to be the one of its pod"
OPERATORS = "the rest is the operator's"
Try = Callable[..., str]


def kind(name: str, of: str, **parts: Any) -> Manifest:
    return {"apiVersion": "joulie.io/v1alpha1", "kind": name, "metadata": {"name": of}, **parts}


def profile(name: str, **target: Any) -> Manifest:
    return kind("TelemetryProfile", name, spec={"target": target}, status={"control": APPLIED})


def event(about: str, component: str = "agent", **parts: Any) -> Manifest:
    return {**node_event(about, EventDetails(component, "instance-0", "CapContested", "said"), 1e9), **parts}


def report(**status: Any) -> tuple[str, str, Manifest]:
    return "PATCH", f"{JOULIE}/nodetwins/mine/status", {"status": status}


UNCAPPED = {"key": "joulie.io/uncapped", "effect": "NoSchedule"}
FOREIGN = {"key": "example.com/gpu", "value": "yes", "effect": "NoSchedule"}
ORDER = {"order": 3, "caps": {"cpuWattsPerPackage": 200}, "groups": ["feed"], "reason": "feed is full"}


def _ordered(state: Manifest) -> Manifest:
    return {**state, "spec": {**state["spec"], "budget": ORDER}}


SCENE = [
    *(node("mine", "eco", taints=[FOREIGN, UNCAPPED]), node("other", "eco")),
    *(_ordered(twin("mine", "eco")), twin("other", "eco")),
    *(kind("NodeHardware", "mine"), kind("NodeHardware", "other")),
    profile("to-mine", scope="node", nodeName="mine"),
    profile("to-other", scope="node", nodeName="other"),
    profile("to-all", scope="cluster"),
    kind("NodePowerProfile", "pin-mine", spec={"nodeName": "mine", "profile": "eco"}),
    kind("NodePowerProfile", "pin-other", spec={"nodeName": "other", "profile": "eco"}),
]
CONTROL = {"status": {"control": {"cpu": {"backend": "http", "result": "error"}}}}


@contextmanager
def installed(plane: ControlPlane, manifests: list[Manifest], *names: str) -> Iterator[None]:
    """In this block the validating policies of these names act."""
    rules = [one for one in manifests if one["kind"].startswith("Validating") and one["metadata"]["name"] in names]
    plane.apply(rules)
    try:
        yield
    finally:
        for rule in rules:
            path = plane.api.resource_path(rule["apiVersion"], rule["kind"])
            plane.api.delete(f"{path.prefix}/{path.plural}/{rule['metadata']['name']}")


def trying(plane: ControlPlane, token: str) -> Try:
    """Makes requests with this token; why one was refused, empty where it was not."""
    from testbed.api import ApiError

    api = plane.api_as(token)

    def attempt(method: str, path: str, body: Manifest | None = None, content: str = "") -> str:
        query = "dryRun=All" + ("&fieldManager=test&force=true" if content == APPLY else "")
        try:
            api.raw(method, f"{path}?{query}", body, content or (MERGE if method == "PATCH" else ""))
        except ApiError as error:
            return error.message
        return ""

    return attempt


def grant(plane: ControlPlane, account: str, *, everything: bool) -> None:
    """The account with the chart's rights, and those of an administrator where only the policy is to refuse."""
    Rights("agent" if "agent" in account else account.removeprefix("joulie-")).grant(plane, account)
    rbac = "rbac.authorization.k8s.io"
    binding = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": f"{account}-everything"}}
    role = {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}
    if everything:
        plane.apply([{**binding, "roleRef": role, "subjects": [subject]}])
