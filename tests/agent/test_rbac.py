"""The agent needs exactly the rights of `deploy/rbac/agent.yaml`: with them it lives, without any one it is refused.

Each case has an account of its own, by whose token an agent lives through everything that it ever does: it looks
around, publishes hardware, caps, says so to twin and profile, puts back what other software changed, tells of it in an
event, and asks for a sign of life.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from joulie.agent.process import run
from joulie.agent.routing.wiring import HostDevices
from joulie.catalogue.lookup import Catalogue
from joulie.cluster.api.cluster import KubernetesCluster
from joulie.cluster.api.credentials import Credentials, trusting
from joulie.cluster.port import Resource
from joulie.cluster.watch.log import ContactLog
from joulie.settings import AgentSettings, load
from testbed.processes import free_port
from tests.agent.world import node, twin
from tests.devices.sysfs_trees import build
from tests.support.rights import Right, Rights
from tests.support.static_token import StaticToken

if TYPE_CHECKING:
    from testbed.api import Api
    from testbed.control_plane import ControlPlane

FORBIDDEN = 403
JOULIE = "/apis/joulie.io/v1alpha1"
CALLS = {"patch_status": "patch"}  # the port's names for calls, where RBAC has others
LIMIT = "class/powercap/intel-rapl:0/constraint_0_power_limit_uw"


class Refusals(ContactLog):
    """What the API server answered and what it did not allow, as `verb resource`."""

    def __init__(self) -> None:
        super().__init__("agent")
        self.refused: set[str] = set()
        self.asked: set[str] = set()
        self.any = asyncio.Event()

    def answered(self, verb: str, resource: Resource, status: int, duration_s: float) -> None:
        what = f"{CALLS.get(verb, verb)} {resource.plural}{'/status' if verb == 'patch_status' else ''}"
        self.asked.add(what)
        if status == FORBIDDEN:
            self._note(what)

    def failed(self, resource: Resource, reason: str, wait_s: float, status: int) -> None:
        if "cannot watch resource" in reason:
            self._note(f"watch {resource.plural}")

    def _note(self, what: str) -> None:
        self.refused.add(what)
        self.any.set()


class Life:
    """One daemonset agent on a fake machine; `plane.api` is the world around it."""

    def __init__(self, plane: ControlPlane, token: str, folder: Path) -> None:
        self.refusals = Refusals()
        self.plane = plane
        self.tree = build("intel-xeon-6148-dual", folder)
        self.stop = asyncio.Event()
        env = {
            "NODE_NAME": "a",
            "RECONCILE_INTERVAL": "200ms",
            "CAP_LEASE": "6s",
            "HOST_SYS_PATH": str(self.tree.sys),
            "STATE_DIR": str(folder / "state"),
            "METRICS_ADDR": f"127.0.0.1:{free_port()}",
        }
        self.settings = load(AgentSettings, env)
        credentials = Credentials(plane.url, StaticToken(token), ssl_context=trusting(plane.ca_file))
        self.cluster = KubernetesCluster(credentials, observer=self.refusals)
        self.host = HostDevices(self.settings, Catalogue(), str(self.tree.proc))

    async def until_refused_or_over(self) -> None:
        agent = asyncio.create_task(
            run(
                self.cluster,
                self.refusals,
                self.settings,
                Catalogue(),
                reporter_name="life",
                stop=self.stop,
                host=self.host,
            )
        )
        life, refused = asyncio.create_task(self._live()), asyncio.create_task(self.refusals.any.wait())
        try:
            async with asyncio.timeout(40):
                await asyncio.wait({life, refused, agent}, return_when=asyncio.FIRST_COMPLETED)
            for task in (life, agent):
                if task.done():
                    task.result()
        finally:
            self.stop.set()
            for task in (life, refused):
                task.cancel()
            await asyncio.gather(agent, life, refused, return_exceptions=True)
            await self.cluster.close()
            await asyncio.sleep(0.1)  # connections that were just being opened are closed by callbacks

    async def _live(self) -> None:
        limit = self.tree.sys / LIMIT
        found = limit.read_text()
        await self._seen(lambda: "patch nodepowerprofiles/status" in self.refusals.asked)  # there is no operator yet
        twinned = {"apiVersion": "joulie.io/v1alpha1", "kind": "NodeTwin", **twin("a", 60, age_s=-36_000)}
        await asyncio.to_thread(self.plane.apply, [twinned])
        await self._seen(lambda: limit.read_text() != found)
        await self._seen(lambda: "patch nodetwins/status" in self.refusals.asked)
        await self._seen(lambda: "patch telemetryprofiles/status" in self.refusals.asked)
        await self._seen(lambda: "patch nodehardwares/status" in self.refusals.asked)
        limit.write_text(found)
        await self._seen(lambda: "create events" in self.refusals.asked)
        await self._seen(lambda: "get nodetwins" in self.refusals.asked)

    async def _seen(self, condition: Any) -> None:
        while not condition():
            await asyncio.sleep(0.01)


def _scene(plane: ControlPlane) -> None:
    profile = {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "TelemetryProfile",
        "metadata": {"name": "a"},
        "spec": {"target": {"scope": "node", "nodeName": "a"}, "controls": {"cpu": {"type": "host"}}},
    }
    plane.apply(
        [
            {"apiVersion": "v1", "kind": "Node", **_without_uid(node("a"))},
            {
                "apiVersion": "joulie.io/v1alpha1",
                "kind": "NodePowerProfile",
                "metadata": {"name": "p"},
                "spec": {"nodeName": "a", "profile": "eco"},
            },
            profile,
        ]
    )


def _without_uid(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "metadata": {key: value for key, value in body["metadata"].items() if key != "uid"}}


def _lived(plane: ControlPlane, token: str, folder: Path) -> Life:
    async def whole() -> Life:
        life = Life(plane, token, folder)
        await life.until_refused_or_over()
        return life

    return asyncio.run(whole())


def test_with_these_rights_the_agent_lives_its_whole_life(fresh_cluster: ControlPlane, tmp_path: Path) -> None:
    _scene(fresh_cluster)
    life = _lived(fresh_cluster, Rights("agent").grant(fresh_cluster), tmp_path)
    assert life.refusals.refused == set()
    api = fresh_cluster.api
    hardware = api.get(f"{JOULIE}/nodehardwares/a")
    assert hardware["status"]["cpu"]["sockets"] == 2
    assert hardware["metadata"]["ownerReferences"][0]["name"] == "a"
    assert api.get(f"{JOULIE}/nodetwins/a")["status"]["controlStatus"]["cpu"]["result"] == "none"  # it has ended
    assert api.get(f"{JOULIE}/telemetryprofiles/a")["status"]["control"]["cpu"]["backend"] in ("rapl", "none")
    pinned = {each["type"]: each for each in api.get(f"{JOULIE}/nodepowerprofiles/p")["status"]["conditions"]}
    assert pinned["Accepted"]["status"] == "True"
    assert pinned["Enforced"]["observedGeneration"] == 1
    reasons = {event["reason"] for event in api.get("/api/v1/namespaces/default/events")["items"]}
    assert "CapPutBack" in reasons


@pytest.mark.parametrize("right", Rights("agent").all(), ids=str)
def test_without_any_one_right_it_is_refused_what_it_needs(
    fresh_cluster: ControlPlane, right: Right, tmp_path: Path
) -> None:
    _scene(fresh_cluster)
    life = _lived(fresh_cluster, Rights("agent").grant(fresh_cluster, without=right), tmp_path)
    assert f"{right.verb} {right.resource}" in life.refusals.refused


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/v1/secrets", None),
        ("GET", "/api/v1/configmaps", None),
        ("GET", "/api/v1/pods", None),
        ("PATCH", "/api/v1/nodes/a", {"metadata": {"labels": {"x": "y"}}}),
        ("PATCH", "/api/v1/nodes/a/status", {"status": {"capacity": {"cpu": "1"}}}),
        ("DELETE", "/api/v1/nodes/a", None),
        ("PATCH", f"{JOULIE}/nodetwins/a", {"spec": {"profile": "performance"}}),
        ("POST", f"{JOULIE}/nodetwins", {"metadata": {"name": "b"}, "spec": {"nodeName": "b"}}),
        ("DELETE", f"{JOULIE}/nodetwins/a", None),
        ("PATCH", f"{JOULIE}/nodehardwares/a", {"metadata": {"labels": {"x": "y"}}}),
        ("DELETE", f"{JOULIE}/nodehardwares", None),
        ("PATCH", f"{JOULIE}/telemetryprofiles/a", {"spec": {"controls": {"cpu": {"type": "none"}}}}),
        ("POST", f"{JOULIE}/nodepowerprofiles", {"metadata": {"name": "p"}}),
        ("PATCH", f"{JOULIE}/nodepowerprofiles/p", {"spec": {"profile": "performance"}}),
        ("GET", "/api/v1/namespaces/default/events", None),
        ("POST", "/api/v1/namespaces/kube-system/events", {"apiVersion": "v1", "kind": "Event"}),
        ("GET", "/apis/coordination.k8s.io/v1/leases", None),
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
    """The API server as the agent's account sees it."""
    _scene(fresh_cluster)
    return fresh_cluster.api_as(Rights("agent").grant(fresh_cluster))
