"""What roles alone refuse to agents, and what a pool's agents may do: they report on any node and decide for none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.chart.admission.accounts import (
    APPLIED,
    CONTROL,
    EVENTS,
    JOULIE,
    NOT_OF_A_POD,
    OPERATORS,
    SCENE,
    event,
    grant,
    installed,
    kind,
    report,
    trying,
)
from tests.chart.charts import SIMULATED, Helm
from tests.chart.kubelet import until
from tests.extender.scheduler.scheduling import create
from tests.support.rights import NAMESPACE, Rights

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", f"{JOULIE}/nodehardwares"),
        ("DELETE", f"{JOULIE}/nodetwins/mine"),
        ("DELETE", f"{JOULIE}/nodehardwares/mine"),
        ("PUT", f"{JOULIE}/nodetwins/mine/status"),
        ("PATCH", f"{JOULIE}/nodetwins/mine"),
        ("PATCH", f"{JOULIE}/nodehardwares/mine"),
        ("POST", f"{JOULIE}/nodetwins"),
        ("POST", f"{JOULIE}/telemetryprofiles"),
        ("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/joulie-agent/token"),
        ("POST", f"/api/v1/namespaces/{NAMESPACE}/events"),
        ("POST", "/apis/events.k8s.io/v1/namespaces/default/events"),
        ("PATCH", f"{EVENTS}/e"),
        ("PATCH", "/api/v1/nodes/mine"),
    ],
)
@pytest.mark.parametrize("account", ["joulie-agent-bare", "joulie-agent-pool"])
def test_an_agents_role_refuses_the_rest(fresh_cluster: ControlPlane, account: str, method: str, path: str) -> None:
    grant(fresh_cluster, account, everything=False)
    attempt = trying(fresh_cluster, fresh_cluster.pod_token(NAMESPACE, account, "mine"))
    assert "forbidden" in attempt(method, path, None if method == "DELETE" else {})


def test_no_account_of_ours_may_speak_as_another(fresh_cluster: ControlPlane) -> None:
    for component in ("agent", "operator", "extender", "simulator", "cleanup"):
        verbs = {(right.resource, right.verb) for right in Rights(component).all()}
        assert not {verb for _, verb in verbs} & {"impersonate", "bind", "escalate", "deletecollection", "*"}
        assert not {name for name, _ in verbs} & {"*", "secrets", "serviceaccounts/token", "pods/exec", "pods/proxy"}


def test_a_pool_agent_reports_on_any_one_node_and_decides_for_none(fresh_cluster: ControlPlane, helm: Helm) -> None:
    plane = fresh_cluster
    create(plane, SCENE)
    grant(plane, "joulie-agent-pool", everything=False)
    with installed(plane, helm.render(SIMULATED), "joulie-agent-pool"):
        attempt = trying(plane, plane.pod_token(NAMESPACE, "joulie-agent-pool"))
        until(lambda: OPERATORS in attempt(*report(schedulableClass="performance")), "the policy is in force")
        assert attempt(*report(controlStatus=APPLIED)) == ""
        assert attempt("PATCH", f"{JOULIE}/nodetwins/other/status", {"status": {"controlStatus": APPLIED}}) == ""
        assert attempt("POST", f"{JOULIE}/nodehardwares", kind("NodeHardware", "third")) == ""
        assert attempt("PATCH", f"{JOULIE}/telemetryprofiles/to-other/status", CONTROL) == ""
        assert attempt("PATCH", f"{JOULIE}/telemetryprofiles/to-all/status", CONTROL) != ""
        assert attempt("POST", EVENTS, event("other")) == ""
        assert attempt("POST", EVENTS, event("other", "operator")) != ""
        assert attempt("POST", EVENTS, event("mine", involvedObject={"kind": "Pod", "name": "p"})) != ""
        unbound = trying(plane, plane.service_account_token(NAMESPACE, "joulie-agent-pool"))
        assert NOT_OF_A_POD in unbound(*report(controlStatus=APPLIED))
