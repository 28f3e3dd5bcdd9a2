"""A real agent process with the rights of its role, on a real API server, under a budget: every way it may end."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from joulie.agent.restore.journal import read_boot_id
from joulie.model.names import BUDGET_LEASE
from testbed.api import ApiError
from tests.agent.agent_processes import AgentProcess
from tests.agent.budget.machines import LIMITS, RAPL_TREE
from tests.agent.budget.orders import NAMESPACE, order, release
from tests.agent.test_process import TWINS, put
from tests.agent.world import node, twin
from tests.devices.sysfs_pieces import UW
from tests.devices.sysfs_trees import build
from tests.support.cli_runner import joulie
from tests.support.rights import Rights

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

pytestmark = pytest.mark.slow
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
PATIENCE_S = 60.0
RENEW_S = 0.3


class Machine:
    """Node `a` with its files, its twin, and an operator that is alive as long as `renews`."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self.folder = folder
        self.tree = build(RAPL_TREE, folder)
        self.token = Rights("agent").grant(plane)
        body = node("a")
        body["status"]["nodeInfo"] = _node_info(read_boot_id())
        put(plane, body, twin("a", 100))
        self.renews = threading.Event()
        self.renews.set()
        self.found = self.limits

    def agent(self, **settings: str) -> AgentProcess:
        settings = {
            "NODE_NAME": "a",
            "HOST_SYS_PATH": str(self.tree.sys),
            "RECONCILE_INTERVAL": "1h",  # whatever happens does not wait for a tick
            **settings,
        }
        return AgentProcess(self.plane, self.folder, token=self.token, **settings)

    @property
    def state_dir(self) -> Path:
        return self.folder / "agent-state"

    @property
    def limits(self) -> list[int]:
        return [int((self.tree.sys / place).read_text() or -1) for place in LIMITS]

    def holds(self, watts: int) -> bool:
        return self.limits == [watts * UW] * 4

    def order(self, spec: dict[str, Any]) -> None:
        self.plane.api.patch(f"{TWINS}/a", {"spec": {"budget": None}})
        self.plane.api.patch(f"{TWINS}/a", {"spec": spec})

    @property
    def said(self) -> dict[str, Any]:
        status = self.plane.api.get(f"{TWINS}/a").get("status", {})
        budget: dict[str, Any] = status.get("controlStatus", {}).get("budget") or {}
        return budget

    def confirms(self, number: int, watts: int | None) -> bool:
        said = self.said
        held = None if watts is None else {"cpuWattsPerPackage": watts}
        return (said.get("order"), said.get("held"), said.get("bootId")) == (number, held, read_boot_id())


@contextmanager
def machine_of(plane: ControlPlane, folder: Path) -> Iterator[Machine]:
    machine = Machine(plane, folder)
    ended = threading.Event()

    def renew() -> None:
        number = 0
        while not ended.wait(RENEW_S):
            if not machine.renews.is_set():
                continue
            number += 1
            spec = {"holderIdentity": "operator-1", "renewTime": f"2026-11-18T08:00:00.{number:06d}Z"}
            with suppress(ApiError, OSError):  # the server is away now and then
                if number == 1:
                    plane.api.post(LEASES, {"metadata": {"name": BUDGET_LEASE}, "spec": spec})
                else:
                    plane.api.patch(f"{LEASES}/{BUDGET_LEASE}", {"spec": spec})

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield machine
    finally:
        ended.set()
        thread.join(30)


def test_orders_outlive_kills_lost_folders_and_clean_stops_and_end_with_a_release(
    fresh_cluster: ControlPlane, tmp_path: Path
) -> None:
    with machine_of(fresh_cluster, tmp_path) as machine:
        with machine.agent() as agent:
            agent.wait_until(lambda: machine.confirms(0, None), PATIENCE_S, "it says that no order holds it")
            machine.order(order(3, 120, failsafe_w=70))
            agent.wait_until(lambda: machine.holds(120), PATIENCE_S, "the order is followed")
            agent.wait_until(lambda: machine.confirms(3, 120), PATIENCE_S, "and confirmed")
            machine.order(order(4, 100, failsafe_w=70))
            agent.wait_until(lambda: machine.confirms(4, 100), PATIENCE_S, "a cut is")
            agent.kill()
        assert machine.holds(100)
        machine.order(order(3, 120, failsafe_w=70))  # an older one
        with machine.agent() as agent:
            agent.wait_until(lambda: machine.said.get("session") == 2, PATIENCE_S, "the next agent speaks")
            agent.wait_until(lambda: machine.confirms(4, 100), PATIENCE_S, "of the order that was kept")
            agent.kill()
        shutil.rmtree(machine.state_dir)
        machine.order(order(5, 110, failsafe_w=70))
        with machine.agent() as agent:
            agent.wait_until(lambda: machine.confirms(5, 110), PATIENCE_S, "without a folder the twin's order counts")
            assert machine.said["session"] == 3
            assert agent.stop() == 0
        assert machine.holds(70)
        assert machine.confirms(5, 70)
        (line,) = (line for line in agent.log() if "agent stopped" in json.dumps(line)[:200])
        assert "power budgets still hold" in json.dumps(line)
        with machine.agent() as agent:
            agent.wait_until(lambda: machine.holds(110), PATIENCE_S, "a rollout ends at the order again")
            fresh_cluster.api.delete(f"{TWINS}/a")
            agent.wait_until(lambda: machine.holds(70), PATIENCE_S, "a deleted twin lifts nothing")
            put(fresh_cluster, twin("a", 100))
            machine.order(order(1, 90))
            agent.wait_until(lambda: machine.confirms(1, 90), PATIENCE_S, "a new twin counts from one")
            machine.order(release(2))
            agent.wait_until(lambda: machine.limits == machine.found, PATIENCE_S, "released, it is as found")
            agent.wait_until(lambda: machine.confirms(2, None), PATIENCE_S, "and says so")
            assert agent.stop() == 0
        assert machine.limits == machine.found


def test_in_silence_the_failsafe_holds_and_with_contact_the_order_does(
    fresh_cluster: ControlPlane, tmp_path: Path
) -> None:
    with machine_of(fresh_cluster, tmp_path) as machine, machine.agent(BUDGET_LEASE="4s", CAP_LEASE="8s") as agent:
        machine.order(order(1, 120, failsafe_w=70))
        agent.wait_until(lambda: machine.confirms(1, 120), PATIENCE_S, "the order is confirmed")
        machine.renews.clear()
        agent.wait_until(lambda: machine.holds(70), PATIENCE_S, "an operator that is dead")
        machine.renews.set()
        agent.wait_until(lambda: machine.confirms(1, 120), PATIENCE_S, "and one that is back")
        fresh_cluster.kill_apiserver()
        agent.wait_until(lambda: machine.holds(70), PATIENCE_S, "an API server that is away for longer than the lease")
        fresh_cluster.start_apiserver()
        agent.wait_until(lambda: machine.holds(120), PATIENCE_S, "and back")
        agent.wait_until(lambda: machine.confirms(1, 120), PATIENCE_S, "which is confirmed")
        page = agent.page()
        assert 'joulie_agent_budget_order{node="a"} 1' in page
        agent.kill()
        outcome = joulie(
            "agent", "restore", env={"STATE_DIR": str(machine.state_dir), "HOST_SYS_PATH": str(machine.tree.sys)}
        )
        assert (outcome.code, machine.limits) == (0, machine.found)
        assert "a power budget held it to 120 W" in outcome.out


def _node_info(boot_id: str) -> dict[str, str]:
    """The API server wants all of them."""
    others = (
        "machineID",
        "systemUUID",
        "kernelVersion",
        "osImage",
        "containerRuntimeVersion",
        "kubeletVersion",
        "kubeProxyVersion",
        "operatingSystem",
        "architecture",
    )
    return {"bootID": boot_id, **dict.fromkeys(others, "test")}
