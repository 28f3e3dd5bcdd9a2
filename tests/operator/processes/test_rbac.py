"""The operator needs exactly the rights of `deploy/rbac/operator.yaml`: with them it lives, without any one it fails.

Each case has an account of its own, by whose token an operator lives through everything that it ever does: election,
first contact, a change of state with its event, a status alone, a node that leaves scope.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from joulie import plugins
from joulie.catalogue.lookup import Catalogue
from joulie.cluster.api.cluster import KubernetesCluster
from joulie.cluster.api.credentials import Credentials, trusting
from joulie.cluster.lease.election import LeaderElector, LeaderHooks, LeaseTimes
from joulie.cluster.port import ClusterError, Resource
from joulie.cluster.watch.observer import ClusterObserver
from joulie.model.names import UNCAPPED_TAINT
from joulie.operator.apply import WriteOutcome
from joulie.operator.budget.loop import BudgetLoop
from joulie.operator.budget.renewal import BudgetLease
from joulie.operator.loop import DecisionModels, Operator
from joulie.operator.process import LEASE_NAME, config_map
from joulie.settings import OperatorSettings, load
from joulie.sources.budget_readings import SignalReader
from joulie.sources.collector import TelemetryCollector
from tests.support.rights import NAMESPACE, Right, Rights
from tests.support.static_token import StaticToken

if TYPE_CHECKING:
    from testbed.api import Api
    from testbed.control_plane import ControlPlane

FORBIDDEN = 403
TWINS = "/apis/joulie.io/v1alpha1/nodetwins"
SETTINGS = load(OperatorSettings, {"STATIC_HP_FRAC": "1", "KUBE_CLIENT_QPS": "1000", "KUBE_CLIENT_BURST": "1000"})
CALLS = {"replace": "update", "patch_status": "patch"}  # the port's names for calls, where RBAC has others


class Refusals(ClusterObserver, LeaderHooks):
    """What the API server did not allow, as `verb resource`."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.any = asyncio.Event()

    def answered(self, verb: str, resource: Resource, status: int, duration_s: float) -> None:
        if status == FORBIDDEN:
            part = "/status" if verb == "patch_status" else ""
            self._refused(f"{CALLS.get(verb, verb)} {resource.plural}{part}")

    def failed(self, *about: Any) -> None:
        """A watch, which is no call that is answered; a failed election call comes here, too, and is no news."""
        if not isinstance(about[0], ClusterError) and "cannot watch resource" in about[1]:
            self._refused(f"watch {about[0].plural}")

    def _refused(self, what: str) -> None:
        self.seen.add(what)
        self.any.set()


class Life:
    """One operator, driven decision by decision; `admin` is the world around it."""

    def __init__(self, plane: ControlPlane, token: str) -> None:
        self.refusals = Refusals()
        self.outcomes: list[WriteOutcome] = []
        self._admin = plane.api
        credentials = Credentials(plane.url, StaticToken(token), ssl_context=trusting(plane.ca_file))
        self._cluster = KubernetesCluster(credentials, observer=self.refusals)
        self._elector = LeaderElector(
            self._cluster,
            namespace=NAMESPACE,
            name=LEASE_NAME,
            identity="life",
            times=LeaseTimes(5.0, 4.0, 0.1),
            hooks=self.refusals,
        )
        self._collector = TelemetryCollector(SETTINGS, time.time)
        decision = SETTINGS.decision
        models = DecisionModels(
            plugins.policy(decision.plan.policy_type), plugins.cooling("linear", decision.twin), Catalogue()
        )
        self.operator = Operator(self._cluster, SETTINGS, models, self._collector, self._elector.seconds_left, "life")
        self._now_s = 0.0
        self._budgets = BudgetLoop(
            self.operator,
            self._cluster,
            SETTINGS,
            self._elector.seconds_left,
            lambda: 1,
            BudgetLease(self._cluster, NAMESPACE, "life"),
            SignalReader("", partial(config_map, self._cluster), time.time),
            monotonic_s=lambda: self._now_s,
        )

    async def until_refused_or_over(self) -> None:
        """The whole life, or up to the first refusal."""
        tasks = [asyncio.create_task(part) for part in (self.operator.watch(), self._elector.run())]
        life, refused = asyncio.create_task(self._live()), asyncio.create_task(self.refusals.any.wait())
        try:
            async with asyncio.timeout(30):
                await asyncio.wait({life, refused}, return_when=asyncio.FIRST_COMPLETED)
            if life.done():
                life.result()
        finally:
            for task in (*tasks, life, refused):
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*tasks, life, refused, return_exceptions=True)
            await self._cluster.close()
            await self._collector.close()
            await asyncio.sleep(0.1)  # connections that were just being opened are closed by callbacks

    async def _live(self) -> None:
        await self.operator.wait_for_sync()
        while not self._elector.is_leader():
            await asyncio.sleep(0.01)
        await self._decide()
        await self._do("POST", "/apis/joulie.io/v1alpha1/nodepowerprofiles", _pin("a", "eco"))
        await self._seen(lambda: bool(self.operator.state.pins))
        await self._decide()
        blocked = {"status": {"controlStatus": {"cpu": {"backend": "none", "result": "blocked"}}}}
        await self._do("PATCH", f"{TWINS}/a/status", blocked)
        await self._seen(lambda: self.operator.state.twins["a"].status.control_status is not None)  # type: ignore[union-attr]
        await self._decide()
        await self._do("PATCH", "/api/v1/nodes/b", {"metadata": {"labels": {"joulie.io/reserved": "true"}}})
        await self._seen(lambda: "joulie.io/reserved" in self.operator.state.nodes["b"].labels)
        await self._decide()
        await self._seen(lambda: self.operator.state.budgets_synced)
        for _ in range(2):
            with contextlib.suppress(ClusterError):  # what is refused is seen by the observer
                await self._budgets.turn()
            self._now_s += 20.0  # so that its Lease is renewed
        await asyncio.sleep(0.3)  # the Lease of the leader is renewed

    async def _decide(self) -> None:
        outcome = await self.operator.reconcile(spread=False)
        assert outcome is not None
        self.outcomes.append(outcome)

    async def _do(self, method: str, path: str, body: dict[str, Any]) -> None:
        content_type = "application/merge-patch+json" if method == "PATCH" else ""
        await asyncio.to_thread(self._admin.raw, method, path, body, content_type)

    async def _seen(self, condition: Any) -> None:
        while not condition():
            await asyncio.sleep(0.01)


def _node(name: str) -> dict[str, Any]:
    labels = {"joulie.io/managed": "true", "joulie.io/hw.cpu-model": "AMD EPYC 9654".replace(" ", "-")}
    status = {"capacity": {"cpu": "192"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def _pin(node: str, profile: str) -> dict[str, Any]:
    return {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "NodePowerProfile",
        "metadata": {"name": f"pin-{node}"},
        "spec": {"nodeName": node, "profile": profile},
    }


def _scene(plane: ControlPlane) -> None:
    profile = {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "TelemetryProfile",
        "metadata": {"name": "all"},
        "spec": {"target": {"scope": "cluster"}, "controls": {"cpu": {"type": "host"}}},
    }
    forecast = {"configMap": f"{NAMESPACE}/grid", "key": "today"}
    budget = {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "PowerBudget",
        "metadata": {"name": "feed"},
        "spec": {"watts": 5_000, "signal": {"forecast": forecast, "at": [{"value": 1, "watts": 4_000}]}},
    }
    tainted = {**_node("b"), "spec": {"taints": [{"key": UNCAPPED_TAINT, "effect": "NoSchedule"}]}}
    plane.apply([_node("a"), tainted, profile, budget])


def test_with_these_rights_the_operator_lives_its_whole_life(fresh_cluster: ControlPlane) -> None:
    _scene(fresh_cluster)
    life = _lived(fresh_cluster, Rights("operator").grant(fresh_cluster))
    assert life.refusals.seen == set()
    assert [outcome.failed for outcome in life.outcomes] == [{}] * 4
    api = fresh_cluster.api
    (twin,) = api.get(TWINS)["items"]
    assert twin["spec"]["profile"] == "eco"
    assert twin["status"]["controlStatus"]["cpu"]["result"] == "blocked"
    assert twin["status"]["effectiveCapState"]["cpuPct"] == 100
    labels = {name: api.get(f"/api/v1/nodes/{name}")["metadata"]["labels"] for name in ("a", "b")}
    assert labels["a"]["joulie.io/power-profile"] == "eco"
    assert "joulie.io/power-profile" not in labels["b"]
    taints = api.get("/api/v1/nodes/b")["spec"].get("taints") or []
    assert UNCAPPED_TAINT not in {taint["key"] for taint in taints}
    (event,) = api.get("/api/v1/namespaces/default/events")["items"]
    assert event["involvedObject"]["name"] == "a"
    lease = api.get(f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{LEASE_NAME}")
    assert lease["spec"]["holderIdentity"] == ""  # given back at the end
    assert api.get(f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/joulie-budget")
    assert twin["spec"]["budget"]["order"] >= 1
    assert api.get("/apis/joulie.io/v1alpha1/powerbudgets/feed")["status"]["conditions"]


@pytest.mark.parametrize("right", Rights("operator").all(), ids=str)
def test_without_any_one_right_it_is_refused_what_it_needs(fresh_cluster: ControlPlane, right: Right) -> None:
    _scene(fresh_cluster)
    life = _lived(fresh_cluster, Rights("operator").grant(fresh_cluster, without=right))
    assert f"{right.verb} {right.resource}" in life.refusals.seen


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/v1/secrets", None),
        ("GET", "/api/v1/configmaps", None),
        ("GET", "/api/v1/nodes/a", None),
        ("DELETE", "/api/v1/nodes/a", None),
        ("POST", "/api/v1/nodes", _node("c")),
        ("PATCH", "/api/v1/nodes/a/status", {"status": {"capacity": {"cpu": "1"}}}),
        ("PATCH", "/api/v1/namespaces/default/pods/p", {"metadata": {"labels": {"x": "y"}}}),
        ("DELETE", "/api/v1/namespaces/default/pods/p", None),
        ("POST", "/api/v1/namespaces/default/pods/p/eviction", {"kind": "Eviction", "apiVersion": "policy/v1"}),
        ("POST", "/apis/joulie.io/v1alpha1/nodepowerprofiles", _pin("a", "eco")),
        ("PATCH", "/apis/joulie.io/v1alpha1/nodepowerprofiles/a", {"spec": {"profile": "eco"}}),
        ("PATCH", "/apis/joulie.io/v1alpha1/telemetryprofiles/a", {"spec": {"target": {"scope": "cluster"}}}),
        ("PATCH", "/apis/joulie.io/v1alpha1/nodehardwares/a/status", {"status": {}}),
        ("DELETE", "/apis/joulie.io/v1alpha1/nodetwins", None),
        ("GET", "/api/v1/namespaces/default/events", None),
        ("POST", "/api/v1/namespaces/kube-system/events", {"apiVersion": "v1", "kind": "Event"}),
        ("GET", f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/another", None),
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/joulie-operator", None),
        ("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/joulie-operator", None),
        ("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles", None),
    ],
)
def test_it_can_do_no_more(allowed: Api, method: str, path: str, body: dict[str, Any] | None) -> None:
    from testbed.api import ApiError

    with pytest.raises(ApiError) as refusal:
        allowed.raw(method, path, body, "application/merge-patch+json" if method == "PATCH" else "")
    assert refusal.value.status == FORBIDDEN


@pytest.fixture
def allowed(fresh_cluster: ControlPlane) -> Api:
    """The API server as the operator's account sees it."""
    fresh_cluster.apply([_node("a")])
    return fresh_cluster.api_as(Rights("operator").grant(fresh_cluster))


def _lived(plane: ControlPlane, token: str) -> Life:
    async def whole() -> Life:
        life = Life(plane, token)
        await life.until_refused_or_over()
        return life

    return asyncio.run(whole())
