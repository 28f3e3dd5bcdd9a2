"""The agent as a real process: how it starts, what it weighs, and how it ends."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.agent.agent_processes import AgentProcess
from tests.agent.world import node, twin
from tests.devices.sysfs_pieces import Tree
from tests.devices.sysfs_trees import build
from tests.support.cli_runner import joulie

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

MAX_MB = 60.0
MAX_SHARE_OF_A_CORE = 0.005
STEADY_S = 60.0
TWINS = "/apis/joulie.io/v1alpha1/nodetwins"
LIMITS = tuple(f"class/powercap/intel-rapl:{package}/constraint_0_power_limit_uw" for package in (0, 1))


def put(plane: ControlPlane, *bodies: dict[str, Any]) -> None:
    """Nodes and twins, as they would be made by kubelet and operator."""
    for body in bodies:
        metadata = {key: value for key, value in body["metadata"].items() if key != "uid"}
        kind = "NodeTwin" if "spec" in body else "Node"
        version = "joulie.io/v1alpha1" if kind == "NodeTwin" else "v1"
        plane.apply([{"apiVersion": version, "kind": kind, **body, "metadata": metadata}])


def limits(tree: Tree) -> list[int]:
    return [int((tree.sys / path).read_text() or -1) for path in LIMITS]


def applied(plane: ControlPlane, name: str = "a") -> bool:
    status = plane.api.get(f"{TWINS}/{name}").get("status", {})
    return bool(status.get("controlStatus", {}).get("cpu", {}).get("result") == "applied")


@pytest.mark.parametrize(
    ("env", "complaint"),
    [
        ({}, "NODE_NAME=''"),
        ({"AGENT_MODE": "cluster"}, "AGENT_MODE='cluster'"),
        ({"AGENT_MODE": "pool", "POOL_SHARDS": "2"}, "POD_NAME=''"),
        ({"RECONCILE_INTERVAL": "soon"}, "RECONCILE_INTERVAL='soon'"),
        ({"NODE_NAME": "a", "HARDWARE_CATALOG_PATH": "/nowhere.toml"}, "HARDWARE_CATALOG_PATH: /nowhere.toml"),
        ({"NODE_NAME": "a", "METRICS_ADDR": "203.0.113.1:80"}, "METRICS_ADDR='203.0.113.1:80'"),
    ],
)
def test_a_setting_that_cannot_be_used_stops_the_start_with_one_line(
    env: dict[str, str], complaint: str, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]\n"
        "users: [{name: c, user: {token: t}}]\ncontexts: [{name: c, context: {cluster: c, user: c}}]\n"
    )
    outcome = joulie("agent", env={"KUBECONFIG": str(config), **env})
    assert outcome.code == 2
    assert complaint in outcome.complaint


def test_help_tells_of_both_commands() -> None:
    outcome = joulie("agent", "--help")
    assert outcome.code == 0
    assert "restore" in outcome.out
    assert "CAP_LEASE" in outcome.out


def test_neither_numpy_nor_rich_nor_the_kubernetes_package_is_loaded() -> None:
    """All that a daemonset agent may come to import in a pod, discovery of every device included."""
    script = (
        "import asyncio, sys\n"
        "import joulie.cli.serve.agent\n"
        "import joulie.agent.process, joulie.cluster.api.cluster, joulie.sources.catalogue_file\n"
        "from joulie.agent.routing.wiring import HostDevices\n"
        "from joulie.catalogue.lookup import Catalogue\n"
        "from joulie.settings import AgentSettings, load\n"
        "host = HostDevices(load(AgentSettings, {'HOST_SYS_PATH': '/nowhere'}), Catalogue())\n"
        "async def look():\n"
        "    for capper in host.cappers({}):\n"
        "        await capper.discover()\n"
        "asyncio.run(look())\n"
        "heavy = ('numpy', 'rich', 'kubernetes', 'yaml', 'jsonschema', 'amdsmi')\n"
        "print(*sorted(name for name in heavy if name in sys.modules))\n"
    )
    outcome = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.split() == []


def test_it_caps_reports_and_puts_everything_back_when_it_is_told_to_stop(
    fresh_cluster: ControlPlane, tmp_path: Path
) -> None:
    tree = build("intel-xeon-6148-dual", tmp_path)
    found = limits(tree)
    put(fresh_cluster, node("a"), twin("a", 60))
    with AgentProcess(
        fresh_cluster, tmp_path, NODE_NAME="a", HOST_SYS_PATH=str(tree.sys), RECONCILE_INTERVAL="500ms"
    ) as agent:
        agent.wait_until(lambda: applied(fresh_cluster), 30, "it is capped")
        assert limits(tree) == [90_000_000, 90_000_000]
        page = agent.page()
        for series in (
            'joulie_backend_mode{node="a",mode="rapl"} 1',
            'joulie_policy_cap_watts{node="a",policy="static_partition"} 180',
            'joulie_agent_enforced_cap_watts{node="a",device="cpu"} 180',
            'joulie_rapl_energy_uj{node="a",zone="package-0"}',
            'joulie_reconcile_errors_total{node="a"} 0',
            'joulie_agent_journal_entries{node="a"} ',
            "joulie_agent_contact_age_seconds ",
        ):
            assert series in page, series
        tree.spend(100, 0.4)
        agent.wait_until(
            lambda: 'joulie_rapl_package_total_power_watts{node="a"}' in agent.page(), 10, "power follows the counters"
        )
        lines = len(agent.log())
        time.sleep(3)
        assert len(agent.log()) == lines  # nothing changed, nothing is said
        assert agent.stop() == 0
    assert limits(tree) == found
    status = fresh_cluster.api.get(f"{TWINS}/a")["status"]
    assert status["controlStatus"]["cpu"]["result"] == "none"
    assert status["schedulableClass"] == "eco"  # what is the operator's is as it was
    assert agent.log()[-1]["message"] == "agent stopped, every device is as it was found"


@pytest.mark.slow
def test_it_is_light(fresh_cluster: ControlPlane, tmp_path: Path) -> None:
    """Below 60 MB, and below half a percent of a core when nothing changes. The time is CPU time, so a loaded machine
    does not matter much; the limit is tripled for what caches and virtual clocks do."""
    tree = build("intel-xeon-6148-dual", tmp_path)
    put(fresh_cluster, node("a"), twin("a", 60, age_s=-36_000))
    with AgentProcess(fresh_cluster, tmp_path, NODE_NAME="a", HOST_SYS_PATH=str(tree.sys)) as agent:
        agent.wait_until(lambda: applied(fresh_cluster), 30, "it is capped")
        time.sleep(5)
        before_s, began_s = agent.cpu_s(), time.monotonic()
        time.sleep(STEADY_S)
        share = (agent.cpu_s() - before_s) / (time.monotonic() - began_s)
        peak_mb = agent.memory_mb("VmHWM")
        seen = f"{share:.3%} of a core, {agent.memory_mb():.1f} MB now, {peak_mb:.1f} MB at most"
        (tmp_path / "weight.txt").write_text(seen)
        assert peak_mb < MAX_MB, seen
        assert share < 3 * MAX_SHARE_OF_A_CORE, seen
        assert agent.stop() == 0


def test_without_an_api_server_it_still_ends_when_told_and_puts_back_what_an_earlier_life_capped(
    fresh_cluster: ControlPlane, tmp_path: Path
) -> None:
    tree = build("intel-xeon-6148-dual", tmp_path)
    found = limits(tree)
    put(fresh_cluster, node("a"), twin("a", 60))
    settings = {"NODE_NAME": "a", "HOST_SYS_PATH": str(tree.sys), "RECONCILE_INTERVAL": "500ms"}
    with AgentProcess(fresh_cluster, tmp_path, **settings) as agent:
        agent.wait_until(lambda: limits(tree) != found, 30, "it is capped")
        agent.kill()
    assert limits(tree) == [90_000_000, 90_000_000]
    with AgentProcess(fresh_cluster, tmp_path, **settings, KUBERNETES_SERVICE_PORT="9") as agent:
        agent.wait_until(lambda: any("not answered" in line["message"] for line in agent.log()), 30, "it goes on")
        assert agent.stop() == 0
    assert limits(tree) == found


def test_silent_connections_cost_neither_a_cap_nor_its_end(fresh_cluster: ControlPlane, tmp_path: Path) -> None:
    """1,100 of them took all 1,024 files that a container often has, and each file of a device is one."""
    tree = build("intel-xeon-6148-dual", tmp_path)
    found = limits(tree)
    put(fresh_cluster, node("a"), twin("a", 60))
    settings = {"NODE_NAME": "a", "HOST_SYS_PATH": str(tree.sys), "RECONCILE_INTERVAL": "500ms"}
    with AgentProcess(fresh_cluster, tmp_path, **settings) as agent:
        resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE, (1024, 1024))
        agent.wait_until(lambda: limits(tree) == [90_000_000, 90_000_000], 30, "it is capped")
        other = ("127.0.0.2", 0)  # than who scrapes: of an address that floods some are turned away
        silent = [socket.create_connection(("127.0.0.1", agent.port), 30, other) for _ in range(1_100)]
        put(fresh_cluster, twin("a", 80))
        agent.wait_until(lambda: limits(tree) == [120_000_000, 120_000_000], 60, "the cap follows")
        assert "joulie_backend_mode" in agent.page()
        assert agent.stop() == 0
        for connection in silent:
            connection.close()
    assert limits(tree) == found
    assert agent.log_file.stat().st_size < 1 << 20
