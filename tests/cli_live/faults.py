"""Everything that can be wrong with an installation, each planted for as long as a block lasts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from copy import deepcopy
from typing import Any

from joulie.cluster.crds import crds
from tests.agent_shell.chain import JOULIE
from tests.cli_live.installation import LEASE, Installation, Object, labels, micro, seconds, training
from tests.rights import NAMESPACE

Plant = Callable[[Installation], AbstractContextManager[None]]
TWINS, NODE = f"{JOULIE}/nodetwins", "node-00002"
APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
LONG_AGO = "2020-01-01T00:00:00Z"


def status(**parts: Any) -> Plant:
    return lambda there: there.changed(f"{TWINS}/{NODE}", {"status": parts}, "/status")


def control(**said: str) -> Plant:
    both = {"cpu": said, "gpu": said}
    return status(controlStatus=both)


def pin(name: str, node: str, **more: Any) -> Object:
    spec = {"nodeName": node, "profile": "eco", **more}
    return {"apiVersion": "joulie.io/v1alpha1", "kind": "NodePowerProfile", "metadata": {"name": name}, "spec": spec}


@contextmanager
def a_definition_is_missing(there: Installation) -> Iterator[None]:
    there.plane.api.delete(f"{CRDS}/telemetryprofiles.joulie.io")
    try:
        yield
    finally:
        wait_for(lambda: not exists(there, f"{CRDS}/telemetryprofiles.joulie.io"))
        there.plane.install_crds()


@contextmanager
def a_definition_is_old(there: Installation) -> Iterator[None]:
    (ours,) = [deepcopy(crd) for crd in crds() if crd["metadata"]["name"].startswith("nodepowerprofiles")]
    del ours["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["expiresAt"]
    there.plane.apply([ours])
    try:
        yield
    finally:
        there.plane.install_crds()


@contextmanager
def the_leader_is_silent(there: Installation) -> Iterator[None]:
    with there.changed(LEASE, {"spec": {"renewTime": micro(time.time() - 600)}}):
        there.lease_is_planted = True
        yield
    there.lease_is_planted = False


@contextmanager
def nobody_holds_the_lease(there: Installation) -> Iterator[None]:
    with there.removed(LEASE):
        there.lease_is_planted = True
        yield
    there.lease_is_planted = False


def the_lease_may_not_be_renewed(there: Installation) -> AbstractContextManager[None]:
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles/joulie-operator-lease"
    return there.changed(path, {"rules": there.plane.api.get(path)["rules"][:1]})


def the_service_leads_nowhere(there: Installation) -> AbstractContextManager[None]:
    metadata = {"name": "joulie-extender", "namespace": NAMESPACE, "labels": labels("extender")}
    spec = {"selector": labels("extender") | {"no": "such"}, "ports": [{"port": 9876}]}
    return there.added({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})


def the_operator_cannot_use_its_settings(there: Installation) -> AbstractContextManager[None]:
    path = f"{APPS}/deployments/joulie-operator"
    (container,) = there.plane.api.get(path)["spec"]["template"]["spec"]["containers"]
    wrong = container | {"env": [{"name": "NODE_SELECTOR", "value": "a in ((("}]}
    return there.changed(path, {"spec": {"template": {"spec": {"containers": [wrong]}}}})


def two_operators_lead(there: Installation) -> AbstractContextManager[None]:
    spec = {"holderIdentity": "another", "leaseDurationSeconds": 15, "renewTime": micro(time.time())}
    metadata = {"name": "joulie-operator", "namespace": "default"}
    return there.added({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})


def an_account_lacks_a_right(there: Installation) -> AbstractContextManager[None]:
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/joulie-operator"
    rules = [rule for rule in there.plane.api.get(path)["rules"] if "pods" not in rule["resources"]]
    return there.changed(path, {"rules": rules})


@contextmanager
def the_scheduler_never_asks(there: Installation) -> Iterator[None]:
    bound = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "placed", "namespace": "default"},
        "spec": {"nodeName": NODE, "containers": [{"name": "c", "image": "i"}]},
        "status": {"conditions": [_condition("PodScheduled")]},
    }
    with there.removed(f"/api/v1/namespaces/{NAMESPACE}/pods/joulie-extender-0"), there.added(bound):
        there.extender("joulie-extender-1", asked=False)
        yield
        there.plane.api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/joulie-extender-1?gracePeriodSeconds=0")


def _condition(name: str) -> Object:
    return {"type": name, "status": "True", "lastTransitionTime": seconds(time.time())}


@contextmanager
def every_node_is_estimated(there: Installation) -> Iterator[None]:
    with ExitStack() as ends:
        for name in there.names:
            static = {"status": {"powerMeasurement": {"source": "static"}}}
            ends.enter_context(there.changed(f"{TWINS}/{name}", static, "/status"))
        yield


@contextmanager
def a_drain_does_not_end(there: Installation) -> Iterator[None]:
    """Nobody but its owner can end that pod."""
    pod = training(NODE)
    pod["status"] = {"conditions": [_condition("PodScheduled") | {"lastTransitionTime": LONG_AGO}]}
    with (
        there.added(pod),
        there.changed(f"{TWINS}/{NODE}", {"status": {"schedulableClass": "draining"}}, "/status"),
        there.changed(f"{TWINS}/{NODE}", {"spec": {"scheduling": {"draining": True}}}),
        there.changed(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {"joulie.io/draining": "true"}}}),
    ):
        yield


def conflicting_pins(there: Installation) -> AbstractContextManager[None]:
    return there.added(pin("first", NODE), pin("second", NODE))


def a_foreign_twin(there: Installation) -> AbstractContextManager[None]:
    twin = {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "NodeTwin",
        "metadata": {"name": "strange"},
        "spec": {"nodeName": NODE},
    }
    return there.added(twin)


def a_node_that_nobody_knows(there: Installation) -> AbstractContextManager[None]:
    labels = {"joulie.io/managed": "true"}
    return there.added({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "strange", "labels": labels}})


def an_orphan(there: Installation) -> AbstractContextManager[None]:
    return there.removed("/api/v1/nodes/node-00005")


def unready(kind: str, component: str, **parts: int) -> Plant:
    return lambda there: there.changed(f"{APPS}/{kind}/joulie-{component}", {"status": parts}, "/status")


def removed(path: str) -> Plant:
    return lambda there: there.removed(path)


OTHER_VERSION = {"metadata": {"labels": {"app.kubernetes.io/version": "0.0.1"}}}
PLANTED: dict[str, tuple[Plant, str, str, str]] = {
    # what is wrong: how it is planted, kind, severity, what is said
    "a definition is missing": (a_definition_is_missing, "crd-missing", "fault", "telemetryprofiles.joulie.io"),
    "a definition is of another version": (a_definition_is_old, "crd-outdated", "fault", "lacks spec.expiresAt"),
    "the leader is silent": (the_leader_is_silent, "no-leader", "fault", "has been silent for 10 min"),
    "there is no lease": (nobody_holds_the_lease, "no-leader", "fault", "there is no lease"),
    "two operators lead": (two_operators_lead, "several-operators", "fault", "another in default"),
    "the operator is not ready": (
        unready("deployments", "operator", readyReplicas=0, availableReplicas=0),
        "component-not-ready",
        "fault",
        "joulie-operator (operator): 0 of 1 pods are ready",
    ),
    "an agent is not ready": (
        unready("daemonsets", "agent", numberReady=5),
        "component-not-ready",
        "fault",
        "5 of 6 pods are ready",
    ),
    "an account lacks a right": (
        an_account_lacks_a_right,
        "component-rights",
        "fault",
        "joulie-system/joulie-operator is not allowed to list pods, watch pods",
    ),
    "the lease may not be renewed": (
        the_lease_may_not_be_renewed,
        "component-rights",
        "fault",
        "update leases.coordination.k8s.io joulie-operator in joulie-system",
    ),
    "the operator cannot use its settings": (
        the_operator_cannot_use_its_settings,
        "operator-settings",
        "warning",
        "NODE_SELECTOR='a in ((('",
    ),
    "the Service of the extender leads nowhere": (
        the_service_leads_nowhere,
        "extender-unreachable",
        "fault",
        "leads to no extender that is ready",
    ),
    "the scheduler never asks": (
        the_scheduler_never_asks,
        "scheduler-not-asking",
        "fault",
        "1 pod placed since the extender runs, and no scheduler has ever asked it",
    ),
    "the admission policy is bound to nothing": (
        removed(f"{ADMISSION}/mutatingadmissionpolicybindings/joulie-performance-affinity"),
        "admission-policy",
        "warning",
        "bound to nothing",
    ),
    "a twin is stale": (status(lastUpdated=LONG_AGO), "twin-stale", "fault", "days old"),
    "a twin has no time": (status(lastUpdated=None), "twin-stale", "fault", "no readable time"),
    "a twin is from the future": (
        status(lastUpdated="2999-01-01T00:00:00Z"),
        "clock-skew",
        "warning",
        "in the future",
    ),
    "a twin is missing": (removed(f"{TWINS}/{NODE}"), "twin-missing", "warning", "has no twin yet"),
    "a twin has no node": (an_orphan, "twin-orphan", "warning", "is no node of the cluster any more"),
    "an agent is silent": (control(updatedAt=LONG_AGO), "agent-silent", "fault", "has been silent for"),
    "an agent's clock is ahead": (
        control(updatedAt="2999-01-01T00:00:00Z"),
        "clock-skew",
        "warning",
        "the node's clock is ahead",
    ),
    "a cap is not enforced": (
        control(result="blocked", message="locked by the BIOS"),
        "not-enforced",
        "fault",
        "is not enforced: locked by the BIOS",
    ),
    "agents only pretend": (
        control(result="blocked", message="SIMULATE_ONLY, nothing is written: 60 %"),
        "dry-run",
        "warning",
        "nothing is capped",
    ),
    "a label says something else": (
        lambda there: there.changed(
            f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {"joulie.io/power-profile": "performance"}}}
        ),
        "labels-out-of-step",
        "warning",
        "joulie.io/power-profile=performance instead of eco",
    ),
    "hardware is only guessed": (
        lambda there: there.changed(
            f"{JOULIE}/nodehardwares/{NODE}",
            {"status": {"quality": {"overall": "heuristic", "warnings": ["no RAPL"]}}},
            "/status",
        ),
        "hardware-heuristic",
        "warning",
        "no RAPL",
    ),
    "power is not measured": (every_node_is_estimated, "telemetry-static", "warning", "of all nodes is estimated"),
    "pins contradict each other": (conflicting_pins, "pin-conflict", "warning", "has 2 pins"),
    "a pin has expired": (
        lambda there: there.added(pin("old", NODE, expiresAt=LONG_AGO)),
        "pin-expired",
        "warning",
        "NodePowerProfile/old expired",
    ),
    "a pin names no node": (
        lambda there: there.added(pin("lost", "no-such-node")),
        "pin-without-effect",
        "warning",
        "its node is not in the cluster",
    ),
    "a twin cannot be read": (a_foreign_twin, "broken-object", "warning", "NodeTwin/strange cannot be read"),
    "a drain does not end": (a_drain_does_not_end, "drain-stuck", "warning", "default/training"),
    "versions are mixed": (
        lambda there: there.changed(f"{APPS}/deployments/joulie-extender", OTHER_VERSION),
        "mixed-versions",
        "warning",
        "versions differ: 0.0.1, ",
    ),
}


def exists(there: Installation, path: str) -> bool:
    from testbed.api import ApiError

    try:
        there.plane.api.get(path)
    except ApiError as error:
        if error.status != 404:
            raise
        return False
    return True


def wait_for(condition: Callable[[], bool], timeout_s: float = 30.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
