"""Snippets of the documents that this software was made from, written anew and applied word by word."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from joulie.cluster.port import NODE_POWER_PROFILES, NODE_TWINS, NODES, PODS
from tests.extender.scheduler.processes import RunningExtender
from tests.extender.scheduler.scheduling import create, node, pod, twin, wait_placed
from tests.operator import objects
from tests.operator.clusters import RealGround
from tests.operator.harness import Play, Scene, play_out
from tests.seeds.named_hosts import NamedHosts

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

EXTENDER_HOST = "joulie-scheduler-extender.joulie-system.svc.cluster.local:9876"
SCHEDULER_CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
extenders:
- urlPrefix: "http://joulie-scheduler-extender.joulie-system.svc.cluster.local:9876"
  filterVerb: "filter"
  prioritizeVerb: "prioritize"
  weight: 1
  enableHTTPS: false
  nodeCacheCapable: false
  ignorable: true
"""
TRANSITION = re.compile(
    r"(?m)^joulie_operator_state_transitions_total"
    r'\{from_state="(\w+)",node="n",result="(\w+)",to_state="(\w+)"\} (\S+)$'
)
GONE_AT_ONCE: dict[str, Any] = {"terminationGracePeriodSeconds": 0}  # there is no kubelet to end them
DEBUG_FIELDS = {
    "nodeName",
    "schedulableClass",
    "headroom",
    "coolingStress",
    "measuredPowerW",
    "cappedPowerW",
    "nodeTdpW",
    "powerTrendWPerMin",
    "baseScore",
    "cpuTotalCores",
    "cpuMaxWattsTotal",
    "gpuCount",
    "gpuMaxWattsPerGpu",
    "hasGpu",
    "stale",
}
STATES = {"fast": "performance", "slow": "eco", "leaving": "draining"}


@pytest.fixture
def three_nodes(fresh_cluster: ControlPlane) -> ControlPlane:
    """One node of each state."""
    made = (part for name, state in STATES.items() for part in (node(name, state), twin(name, state)))
    create(fresh_cluster, made)
    return fresh_cluster


def test_kube_scheduler_takes_the_configuration_as_it_is_written(three_nodes: ControlPlane, tmp_path: Path) -> None:
    """Only the name of the Service is resolved for it, as it runs outside of a cluster."""
    config = yaml.safe_load(SCHEDULER_CONFIGURATION)
    with (
        RunningExtender(three_nodes, tmp_path) as extender,
        NamedHosts(EXTENDER_HOST, extender.port) as hosts,
        three_nodes.scheduler(config, {"HTTP_PROXY": hosts.url}),
    ):
        pods = [
            pod(f"{kind}-{at}", performance=kind == "p", scheduler="default-scheduler")
            for at in range(5)
            for kind in "ps"
        ]
        create(three_nodes, pods)
        where = wait_placed(three_nodes, (made["metadata"]["name"] for made in pods), timeout_s=120)
        assert {where[name] for name in where if name.startswith("p")} == {"fast"}
        assert {where[name] for name in where if name.startswith("s")} == {"slow"}
        assert {asked.url for asked in hosts.asked} == {
            f"http://{EXTENDER_HOST}/{verb}" for verb in ("filter", "prioritize")
        }
        for asked in hosts.asked:
            request = json.loads(asked.body)
            assert request["NodeNames"] is None
            assert all("labels" in item["metadata"] for item in request["Nodes"]["items"]), "whole nodes"

        extender.kill()
        create(three_nodes, [pod("alone", scheduler="default-scheduler")])
        assert wait_placed(three_nodes, ["alone"], timeout_s=120).keys() == {"alone"}, "ignorable"


def _curl(*arguments: str) -> str:
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    done = subprocess.run(["curl", "-s", "--max-time", "60", *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def test_filter_decisions_can_be_seen_by_curl(three_nodes: ControlPlane, tmp_path: Path) -> None:
    asked = {"pod": pod("train", performance=True), "nodes": {"items": [node(name) for name in STATES]}}
    with RunningExtender(three_nodes, tmp_path) as extender:
        assert _curl("-o", "/dev/null", "-w", "%{http_code}", f"http://localhost:{extender.port}/healthz") == "200"
        header = ("-H", "Content-Type: application/json")
        answer = json.loads(
            _curl("-X", "POST", f"http://localhost:{extender.port}/filter", *header, "-d", json.dumps(asked))
        )
        assert [item["metadata"]["name"] for item in answer["Nodes"]["items"]] == ["fast"]
        assert answer["FailedNodes"].keys() | answer["FailedAndUnresolvableNodes"].keys() == {"slow", "leaving"}
        standard = {**asked, "pod": pod("any")}
        answer = json.loads(
            _curl("-X", "POST", f"http://localhost:{extender.port}/filter", *header, "-d", json.dumps(standard))
        )
        assert [item["metadata"]["name"] for item in answer["Nodes"]["items"]] == list(STATES)


def test_the_debug_view_has_every_field_that_is_shown(three_nodes: ControlPlane, tmp_path: Path) -> None:
    with RunningExtender(three_nodes, tmp_path) as extender:
        shown = json.loads(_curl(f"http://localhost:{extender.port}/debug/scoring"))
    assert shown["coefficients"].keys() >= {"cpuUtilCoeff", "gpuUtilCoeffStandard", "gpuUtilCoeffPerformance"}
    assert {item["nodeName"]: item["schedulableClass"] for item in shown["nodes"]} == STATES
    for item in shown["nodes"]:
        assert item.keys() >= DEBUG_FIELDS
        assert (item["hasGpu"], item["gpuCount"], item["stale"]) == (False, 0, False)


class Machine:
    """One node on its way through the transition's state machine."""

    def __init__(self, scene: Scene, play: Play) -> None:
        self._scene = scene
        self._play = play
        self._state = "performance"
        self._transitions: Counter[tuple[str, str, str]] = Counter()

    async def decides(self, state: str) -> None:
        """The next decision makes the node this, says so in labels and twin, and counts the change."""
        outcome = await self._play.tick()
        assert outcome is not None
        assert outcome.failed == {}
        profile = "performance" if state == "performance" else "eco"
        labels = (await self._scene.person.all(NODES))["n"]["metadata"]["labels"]
        assert labels["joulie.io/power-profile"] == profile
        assert labels["joulie.io/draining"] == ("true" if state == "draining" else "false")
        found = (await self._scene.person.all(NODE_TWINS))["n"]
        assert (found["spec"]["profile"], found["status"]["schedulableClass"]) == (profile, state)
        assert found["spec"]["cpu"]["packagePowerCapPctOfMax"] == (60 if state == "eco" else 100)
        if state != self._state:
            self._transitions[self._state, state, "deferred" if state == "draining" else "applied"] += 1
        self._state = state
        counted = TRANSITION.findall(self._play.operator.metrics.page().decode())
        assert {(was, now, result): float(n) for was, result, now, n in counted} == self._transitions


def test_a_node_goes_through_the_state_machine_step_by_step(fresh_cluster: ControlPlane) -> None:
    """What is wanted is said by a NodePowerProfile; what must not be throttled, by pods' scheduling constraints."""
    wants_eco = objects.pin("wish", "n", "eco")
    excludes_eco = {"key": "joulie.io/power-profile", "operator": "NotIn", "values": ["eco"]}
    required = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [excludes_eco]}]}
    }
    by_selector = objects.pod("one", "n", nodeSelector={"joulie.io/power-profile": "performance"}, **GONE_AT_ONCE)
    by_affinity = objects.pod("two", "n", affinity={"nodeAffinity": required}, **GONE_AT_ONCE)

    async def scenario(scene: Scene) -> None:
        person = scene.person
        await person.put(NODES, objects.node("n"))
        async with scene.operator({"STATIC_HP_FRAC": "1"}) as play:
            machine = Machine(scene, play)
            await machine.decides("performance")
            await person.put(PODS, by_selector)
            await person.put(PODS, by_affinity)
            await person.put(NODE_POWER_PROFILES, wants_eco)
            await machine.decides("draining")  # defer
            await machine.decides("draining")  # still blocked
            await person.remove(PODS, "one")
            await machine.decides("draining")  # still blocked, by the other
            await person.remove(NODE_POWER_PROFILES, "wish")
            await machine.decides("performance")  # re-plan perf
            await person.put(NODE_POWER_PROFILES, wants_eco)
            await machine.decides("draining")  # defer
            await person.remove(PODS, "two")
            await machine.decides("eco")  # unblocked
            await person.remove(NODE_POWER_PROFILES, "wish")
            await machine.decides("performance")  # plan perf
            await person.put(NODE_POWER_PROFILES, wants_eco)
            await machine.decides("eco")  # allow
            assert await scene.person.all(PODS) == {}, "what left was told to, by its owner"

    play_out(RealGround(fresh_cluster), scenario)
