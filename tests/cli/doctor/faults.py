"""Everything that can be wrong with an installation, each planted for as long as a block lasts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from copy import deepcopy
from typing import Any, NamedTuple

from joulie.cluster.crds.definitions import crds
from tests.agent.chain import JOULIE
from tests.cli.installation import LEASE, Installation, Object, labels, micro, seconds, training
from tests.support.rights import NAMESPACE

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
def no_process_holds_the_lease(there: Installation) -> Iterator[None]:
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
    """Only its owner can end that pod."""
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


def a_node_of_unknown_hardware(there: Installation) -> AbstractContextManager[None]:
    labels = {"joulie.io/managed": "true"}
    return there.added({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "strange", "labels": labels}})


def an_orphan(there: Installation) -> AbstractContextManager[None]:
    return there.removed("/api/v1/nodes/node-00005")


def unready(kind: str, component: str, **parts: int) -> Plant:
    return lambda there: there.changed(f"{APPS}/{kind}/joulie-{component}", {"status": parts}, "/status")


def removed(path: str) -> Plant:
    return lambda there: there.removed(path)


class Planted(NamedTuple):
    """One thing that is wrong, and what `doctor` has to say of it."""

    plant: Plant
    kind: str
    severity: str
    said: str
    number: int = 1  # of findings: one for each node, or one for the installation
    follow: bool = False  # whether its next step is a command that ends it, and is tried


OTHER_VERSION = {"metadata": {"labels": {"app.kubernetes.io/version": "0.0.1"}}}
PLANTED: dict[str, Planted] = {
    # what is wrong: how it is planted, kind, severity, what is said
    "a definition is missing": Planted(a_definition_is_missing, "crd-missing", "fault", "telemetryprofiles.joulie.io"),
    "a definition is of another version": Planted(
        a_definition_is_old, "crd-outdated", "fault", "missing or different: spec.expiresAt", follow=True
    ),
    "the leader is silent": Planted(the_leader_is_silent, "no-leader", "fault", "has been silent for 10 min"),
    "there is no lease": Planted(no_process_holds_the_lease, "no-leader", "fault", "there is no lease"),
    "two operators lead": Planted(two_operators_lead, "several-operators", "fault", "another in default"),
    "the operator is not ready": Planted(
        unready("deployments", "operator", readyReplicas=0, availableReplicas=0),
        "component-not-ready",
        "fault",
        "joulie-operator (operator): 0 of 1 pods are ready",
    ),
    "an agent is not ready": Planted(
        unready("daemonsets", "agent", numberReady=5),
        "component-not-ready",
        "fault",
        "5 of 6 pods are ready",
    ),
    "an account lacks a right": Planted(
        an_account_lacks_a_right,
        "component-rights",
        "fault",
        "joulie-system/joulie-operator is not allowed to list pods, watch pods",
    ),
    "the lease may not be renewed": Planted(
        the_lease_may_not_be_renewed,
        "component-rights",
        "fault",
        "update leases.coordination.k8s.io joulie-operator in joulie-system",
    ),
    "the operator cannot use its settings": Planted(
        the_operator_cannot_use_its_settings,
        "operator-settings",
        "warning",
        "NODE_SELECTOR='a in ((('",
    ),
    "the Service of the extender leads nowhere": Planted(
        the_service_leads_nowhere,
        "extender-unreachable",
        "fault",
        "selects no ready extender pod",
    ),
    "the scheduler never asks": Planted(
        the_scheduler_never_asks,
        "scheduler-not-asking",
        "hint",
        "1 pod bound since the extender started, but no scheduler has ever called it",
    ),
    "the admission policy has no binding": Planted(
        removed(f"{ADMISSION}/mutatingadmissionpolicybindings/joulie-performance-affinity"),
        "admission-policy",
        "warning",
        "has no binding",
    ),
    "a twin is stale": Planted(status(lastUpdated=LONG_AGO), "twin-stale", "fault", "days old"),
    "a twin has no time": Planted(status(lastUpdated=None), "twin-stale", "fault", "no readable time"),
    "a twin is from the future": Planted(
        status(lastUpdated="2999-01-01T00:00:00Z"),
        "clock-skew",
        "warning",
        "the operator's clock is 3",
    ),
    "a twin is missing": Planted(removed(f"{TWINS}/{NODE}"), "twin-missing", "warning", "has no twin yet"),
    "a twin has no node": Planted(an_orphan, "twin-orphan", "warning", "is no longer a node of the cluster"),
    "an agent is silent": Planted(control(updatedAt=LONG_AGO), "agent-silent", "fault", "has been silent for"),
    "an agent's clock is ahead": Planted(
        control(updatedAt="2999-01-01T00:00:00Z"),
        "clock-skew",
        "warning",
        "days ahead: the node's",
    ),
    "a cap is not enforced": Planted(
        control(result="blocked", message="locked by the BIOS"),
        "not-enforced",
        "fault",
        "is not enforced: locked by the BIOS",
    ),
    "agents only pretend": Planted(
        control(result="blocked", message="SIMULATE_ONLY, nothing is written: 60 %"),
        "dry-run",
        "hint",
        "is only simulated",
    ),
    "a label says something else": Planted(
        lambda there: there.changed(
            f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {"joulie.io/power-profile": "performance"}}}
        ),
        "labels-out-of-step",
        "warning",
        "joulie.io/power-profile=performance instead of eco",
    ),
    "hardware is only guessed": Planted(
        lambda there: there.changed(
            f"{JOULIE}/nodehardwares/{NODE}",
            {"status": {"quality": {"overall": "heuristic", "warnings": ["no RAPL"]}}},
            "/status",
        ),
        "hardware-heuristic",
        "hint",
        "no RAPL",
    ),
    "power is not measured": Planted(
        every_node_is_estimated, "telemetry-static", "hint", "power of all nodes is estimated"
    ),
    "pins contradict each other": Planted(conflicting_pins, "pin-conflict", "warning", "has 2 pins"),
    "a pin has expired": Planted(
        lambda there: there.added(pin("old", NODE, expiresAt=LONG_AGO)),
        "pin-expired",
        "warning",
        "NodePowerProfile/old expired",
        follow=True,
    ),
    "a pin names no node": Planted(
        lambda there: there.added(pin("lost", "no-such-node")),
        "pin-without-effect",
        "warning",
        "its node is not in the cluster",
        follow=True,
    ),
    "a twin cannot be read": Planted(a_foreign_twin, "broken-object", "warning", "NodeTwin/strange cannot be decoded"),
    "a drain does not end": Planted(a_drain_does_not_end, "drain-stuck", "warning", "default/training"),
    "versions are mixed": Planted(
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
