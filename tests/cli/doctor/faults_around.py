"""More that can be wrong: with what stands around the nodes, such as extender, admission, sensors and clocks."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from joulie.overview.findings import EARLIER_ROUTE
from tests.cli.doctor.faults import (
    ADMISSION,
    APPS,
    LONG_AGO,
    NODE,
    TWINS,
    Plant,
    Planted,
    control,
    pin,
    removed,
    status,
    unready,
)
from tests.cli.installation import LEASE, Installation, Object, labels, micro, seconds, training
from tests.support.rights import NAMESPACE

POLICY = f"{ADMISSION}/mutatingadmissionpolicies/joulie-performance-affinity"
EXTENDER_POD = f"/api/v1/namespaces/{NAMESPACE}/pods/joulie-extender-0"
BOTH = {"backend": "rapl", "result": "blocked", "message": "locked by the BIOS"}


def now() -> str:
    return seconds(time.time())


def set_for_operator(**env: str) -> Plant:
    """As if the values of the chart said so."""

    def plant(there: Installation) -> AbstractContextManager[None]:
        path = f"{APPS}/deployments/joulie-operator"
        (container,) = there.plane.api.get(path)["spec"]["template"]["spec"]["containers"]
        said = [{"name": name, "value": value} for name, value in env.items()]
        return there.changed(path, {"spec": {"template": {"spec": {"containers": [container | {"env": said}]}}}})

    return plant


def together(*plants: Plant) -> Plant:
    @contextmanager
    def plant(there: Installation) -> Iterator[None]:
        with ExitStack() as ends:
            for one in plants:
                ends.enter_context(one(there))
            yield

    return plant


@contextmanager
def a_clock_of_an_agent_is_behind(there: Installation) -> Iterator[None]:
    """It reports all the time, and each report carries a time of ten minutes ago."""
    late = {"result": "applied", "updatedAt": seconds(time.time() - 600)}
    patch = {"status": {"controlStatus": {"cpu": late, "gpu": late}}}
    with there.changed(f"{TWINS}/{NODE}", patch, "/status?fieldManager=joulie-agent"):
        yield


@contextmanager
def the_clock_of_the_operator_is_behind(there: Installation) -> Iterator[None]:
    late = {"status": {"lastUpdated": seconds(time.time() - 600)}}
    with ExitStack() as ends:
        for name in there.names:
            ends.enter_context(there.changed(f"{TWINS}/{name}", late, "/status?fieldManager=joulie-operator"))
        yield


@contextmanager
def the_clock_of_the_leader_is_behind(there: Installation) -> Iterator[None]:
    there.lease_is_planted = True
    late = {"spec": {"renewTime": micro(time.time() - 600)}}
    with there.changed(LEASE, late, "?fieldManager=joulie-operator"):
        yield
    there.lease_is_planted = False


def on_full_power(**said: str) -> Plant:
    """On a node that is not capped."""

    @contextmanager
    def plant(there: Installation) -> Iterator[None]:
        name = next(name for name, twin in there.chain.twins().items() if twin["spec"]["profile"] == "performance")
        both = {"status": {"controlStatus": {"cpu": said, "gpu": said}}}
        with there.changed(f"{TWINS}/{name}", both, "/status"):
            yield

    return plant


@contextmanager
def every_node_is_reserved(there: Installation) -> Iterator[None]:
    with ExitStack() as ends:
        for name in there.names:
            reserved = {"metadata": {"labels": {"joulie.io/reserved": "true"}}}
            ends.enter_context(there.changed(f"/api/v1/nodes/{name}", reserved))
        yield


@contextmanager
def an_agent_never_came(there: Installation) -> Iterator[None]:
    with there.changed(f"{TWINS}/{NODE}", {"status": {"controlStatus": None}}, "/status"):
        yield


@contextmanager
def a_pin_is_out_of_scope(there: Installation) -> Iterator[None]:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "free"}}
    with there.added(node, pin("astray", "free")):
        yield


@contextmanager
def the_admission_policy_is_old(there: Installation) -> Iterator[None]:
    """It does not know draining nodes, and so ends running pods when a kubelet restarts."""
    text = json.dumps(there.plane.api.get(POLICY)["spec"]).replace("joulie.io/draining", "joulie.io/power-profile")
    with there.changed(POLICY, {"spec": json.loads(text)}):
        yield


@contextmanager
def the_admission_policy_fails(there: Installation) -> Iterator[None]:
    broken = [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/spec/none'}]"}}]
    with there.changed(POLICY, {"spec": {"mutations": broken}}):
        _wait_for_policy(there, refuses=True)
        yield
    _wait_for_policy(there, refuses=False)


def _wait_for_policy(there: Installation, *, refuses: bool) -> None:
    """A new policy takes some seconds to act."""
    from testbed.api import ApiError
    from tests.cli.doctor.faults import wait_for

    body = {
        "metadata": {"generateName": "trial-", "annotations": {"joulie.io/workload-class": "performance"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }

    def acts() -> bool:
        try:
            there.plane.api.post("/api/v1/namespaces/default/pods?dryRun=All", body)
        except ApiError:
            return refuses
        return not refuses

    wait_for(acts, 60.0)


@contextmanager
def there_is_no_admission_policy(there: Installation) -> Iterator[None]:
    with there.removed(POLICY), there.removed(POLICY.replace("policies", "policybindings")):
        yield


def no_extender_is_ready(there: Installation) -> AbstractContextManager[None]:
    unready_pod = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}

    @contextmanager
    def both() -> Iterator[None]:
        counts = {"readyReplicas": 0, "availableReplicas": 0}
        with (
            unready("deployments", "extender", **counts)(there),
            there.changed(EXTENDER_POD, unready_pod, "/status"),
        ):
            yield

    return both()


@contextmanager
def the_extender_is_scaled_to_nothing(there: Installation) -> Iterator[None]:
    path = f"{APPS}/deployments/joulie-extender"
    with (
        there.removed(EXTENDER_POD),
        there.changed(path, {"spec": {"replicas": 0}}),
        there.changed(path, {"status": {"replicas": 0, "readyReplicas": 0, "availableReplicas": 0}}, "/status"),
    ):
        yield


def the_extender_refuses_connections(there: Installation) -> AbstractContextManager[None]:
    """Its pod is called ready by a kubelet that is dead too."""
    return an_extender_with(there, metrics=1)


@contextmanager
def an_extender_with(there: Installation, **ports: int) -> Iterator[None]:
    pod = there.plane.api.get(EXTENDER_POD)
    pod["spec"]["containers"][0]["ports"] = [{"name": name, "containerPort": port} for name, port in ports.items()]
    with there.removed(EXTENDER_POD):
        there.plane.apply([pod])
        yield
        there.plane.api.delete(f"{EXTENDER_POD}?gracePeriodSeconds=0")


@contextmanager
def a_service_is_left_of_the_extender(there: Installation) -> Iterator[None]:
    metadata = {"name": "joulie-extender", "namespace": NAMESPACE, "labels": labels("extender")}
    spec = {"selector": labels("extender"), "ports": [{"port": 9876}]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
    with there.removed(EXTENDER_POD), there.removed(f"{APPS}/deployments/joulie-extender"), there.added(service):
        yield


def event_of_agent(reason: str, message: str, at_s: float) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": reason.lower(), "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": NODE},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "lastTimestamp": seconds(at_s),
        "firstTimestamp": now(),
    }


def a_device_could_not_be_put_back(there: Installation) -> AbstractContextManager[None]:
    message = "not everything could be restored; it stays in the journal: package-0"
    return there.added(event_of_agent("RestoreIncomplete", message, time.time() + 60))


def a_device_of_an_earlier_route_stays_capped(there: Installation) -> AbstractContextManager[None]:
    """Since then the agent has reported of the node's other devices that all is applied."""
    message = f"{EARLIER_ROUTE} could not be removed; retrying: http://old capWatts: no answer within 5 s"
    return there.added(event_of_agent("RestoreIncomplete", message, time.time() - 1200))


AROUND: dict[str, Planted] = {
    "CPU and GPU of one node are one node": Planted(control(**BOTH), "not-enforced", "fault", "CPU cap of "),
    "a command fails": Planted(
        control(backend="http", result="error", message="HTTP 500"), "not-enforced", "fault", "HTTP 500"
    ),
    "another program sets the same limit": Planted(
        control(backend="rapl", result="blocked", message="contested: 4 corrections in 10 minutes"),
        "cap-contested",
        "fault",
        "contested",
    ),
    "a control path is wrong on a node at full power": Planted(
        on_full_power(backend="http", result="error", message="HTTP 404 on every command"),
        "not-enforced",
        "fault",
        "HTTP 404",
    ),
    "a device that cannot be capped is at full power": Planted(
        on_full_power(backend="none", result="blocked", message="no powercap"), "cannot-cap", "hint", "no powercap"
    ),
    "an agent never came": Planted(an_agent_never_came, "agent-silent", "fault", "no agent has reported yet"),
    "an agent's clock is behind": Planted(
        a_clock_of_an_agent_is_behind, "clock-skew", "warning", "10 min behind: the node's"
    ),
    "the operator's clock is behind": Planted(
        the_clock_of_the_operator_is_behind, "clock-skew", "warning", "the operator's clock is 10 min behind"
    ),
    "the leader's clock is behind": Planted(
        the_clock_of_the_leader_is_behind, "clock-skew", "warning", "is 10 min behind the API server's"
    ),
    "the selector matches nothing": Planted(
        set_for_operator(NODE_SELECTOR="no=such"), "scope-empty", "fault", "'no=such' matches none of 6 nodes; 6 twins"
    ),
    "every node is reserved": Planted(every_node_is_reserved, "scope-empty", "fault", "all 6 nodes that"),
    "the budget is exceeded": Planted(
        set_for_operator(POWER_BUDGET_WATTS="1"), "budget-exceeded", "warning", "more than POWER_BUDGET_WATTS"
    ),
    "a performance pod runs on an eco node": Planted(
        lambda there: there.added(training(NODE)), "performance-on-eco", "fault", "default/training"
    ),
    "a pin is out of scope": Planted(
        a_pin_is_out_of_scope, "pin-without-effect", "warning", "its node is out of scope", follow=True
    ),
    "a device could not be put back": Planted(
        a_device_could_not_be_put_back, "restore-pending", "fault", "it stays in the journal"
    ),
    "a device of an earlier route stays capped": Planted(
        a_device_of_an_earlier_route_stays_capped, "restore-pending", "fault", "http://old capWatts"
    ),
    "no extender is ready": Planted(no_extender_is_ready, "extender-down", "fault", "none is ready"),
    "the extender is scaled to nothing": Planted(
        the_extender_is_scaled_to_nothing, "extender-down", "fault", "wants 0 pods"
    ),
    "the extender refuses connections": Planted(
        the_extender_refuses_connections, "extender-down", "fault", "refuses connections"
    ),
    "a Service is all that is left of the extender": Planted(
        a_service_is_left_of_the_extender, "extender-down", "fault", "exists, but no Deployment"
    ),
    "there is no admission policy": Planted(
        there_is_no_admission_policy, "admission-policy", "hint", "extender times out"
    ),
    "the admission policy has one term": Planted(
        the_admission_policy_is_old, "admission-policy-outdated", "fault", "evicts running performance pods"
    ),
    "the admission policy fails": Planted(
        the_admission_policy_fails, "admission-policy-failing", "fault", "rejects performance pods"
    ),
    "the old time of an agent tells nothing of its clock": Planted(
        status(controlStatus={"cpu": {"updatedAt": LONG_AGO}, "gpu": {"updatedAt": LONG_AGO}}),
        "agent-silent",
        "fault",
        "silent for",
    ),
    "a binding is left without its policy": Planted(
        removed(POLICY), "admission-policy", "hint", "the admission policy is not installed"
    ),
    "hardware is not believed": Planted(
        lambda there: there.changed(
            f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {"joulie.io/hw.gpu-count": "many"}}}
        ),
        "hardware-implausible",
        "warning",
        "hw.gpu-count",
    ),
}
