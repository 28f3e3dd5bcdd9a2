"""A real kube-scheduler with the configuration of `deploy/`, and nodes, twins and pods for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from joulie.model.rfc3339 import format_time
from tests.extender.scheduler.processes import wait_until

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

Body = dict[str, Any]

SHIPPED = Path(__file__).parents[3] / "deploy" / "scheduler"
SECOND = "second-scheduler.yaml"
SCHEDULER = "joulie-scheduler"
PODS = "/api/v1/namespaces/default/pods"
TWINS = "/apis/joulie.io/v1alpha1/nodetwins"
PROFILES = {"performance": "performance", "eco": "eco", "draining": "eco"}  # a draining node's label says eco
MAX_W = 800.0
# kube-scheduler waits for the answer, however busy the machine is; as shipped it goes on without after half a second.
PATIENT: Body = {"httpTimeout": "120s", "ignorable": False}


def shipped(name: str = SECOND, url: str = "", *, scoring: bool = True, **extender: Any) -> Body:
    """A configuration of `deploy/scheduler` with the extender at this address, or without one."""
    config: Body = yaml.safe_load((SHIPPED / name).read_text())
    for header in ("apiVersion", "kind", "leaderElection", "clientConnection"):
        config.pop(header, None)  # the test control plane has its own
    if url:
        config["extenders"][0] |= {"urlPrefix": url, **extender}
    else:
        config.pop("extenders", None)
    if not scoring:
        config["profiles"][0]["plugins"] = {"score": {"disabled": [{"name": "*"}]}}
    return config


def node(name: str, state: str = "", cpu: str = "192", pods: int = 1000, **spec: Any) -> Body:
    """A Ready node with two EPYC 9654; labelled by its state if it has one."""
    room = {"cpu": cpu, "memory": "1Ti", "pods": str(pods)}
    labels = {"kubernetes.io/hostname": name, "joulie.io/managed": "true", "joulie.io/hw.cpu-model": "EPYC-9654"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels | (state_labels(state) if state else {})},
        "spec": spec,
        "status": {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def state_labels(state: str) -> dict[str, str]:
    return {
        "joulie.io/power-profile": PROFILES[state],
        "joulie.io/draining": "true" if state == "draining" else "false",
    }


def twin(name: str, state: str, headroom: float = 60, *, cooling: float = 0, measured_w: float | None = None) -> Body:
    """A fresh twin; its score for performance pods without measured power: 0.7 × headroom + 0.15 × (100 − cooling)."""
    return {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "NodeTwin",
        "metadata": {"name": name},
        "spec": {"nodeName": name, "profile": PROFILES[state]},
        "status": twin_status(state, headroom, cooling=cooling, measured_w=measured_w),
    }


def twin_status(state: str, headroom: float = 60, *, cooling: float = 0, measured_w: float | None = None) -> Body:
    status: Body = {
        "schedulableClass": state,
        "predictedPowerHeadroomScore": headroom,
        "predictedCoolingStressScore": cooling,
        "lastUpdated": format_time(time.time()),
    }
    if measured_w is not None:
        powers = {"measuredNodePowerW": measured_w, "nodeCappedPowerW": MAX_W, "nodeTdpW": MAX_W}
        status["powerMeasurement"] = {"source": "static", "powerTrendWPerMin": 0, **powers}
    return status


def pod(name: str, *, performance: bool = False, cpu: str = "100m", scheduler: str = SCHEDULER, **spec: Any) -> Body:
    annotations = {"joulie.io/workload-class": "performance"} if performance else {}
    container = {"name": "work", "image": "work", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"schedulerName": scheduler, "containers": [container], **spec},
    }


def create(plane: ControlPlane, objects: Iterable[Body]) -> None:
    """Many at a time, each with its status."""
    from testbed.objects import create_all

    asyncio.run(create_all(plane, deepcopy(list(objects)), concurrency=16))


def placed(plane: ControlPlane) -> dict[str, str]:
    """Where every pod is bound; those that wait are not in it."""
    items = plane.api.get(PODS)["items"] or []
    return {item["metadata"]["name"]: item["spec"]["nodeName"] for item in items if "nodeName" in item["spec"]}


def wait_placed(plane: ControlPlane, names: Iterable[str], timeout_s: float = 60) -> dict[str, str]:
    """Where these pods are bound, once all are. They exist already."""
    wanted = set(names)
    wait_until(lambda: not wanted & waiting(plane), timeout_s, f"{len(wanted)} pods are bound")
    found = placed(plane)
    return {name: found[name] for name in wanted}


def waiting(plane: ControlPlane) -> set[str]:
    """The pods that have no node: to list these alone is cheap among thousands."""
    items = plane.api.get(f"{PODS}?fieldSelector=spec.nodeName=")["items"] or []
    return {item["metadata"]["name"] for item in items}


def set_state(plane: ControlPlane, name: str, state: str) -> None:
    """As the operator would: the twin, then the node's labels."""
    plane.api.patch(f"{TWINS}/{name}/status", {"status": twin_status(state)})
    plane.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": state_labels(state)}})


def events_of(plane: ControlPlane, name: str) -> list[str]:
    """What was said about a pod: `reason: message`."""
    found = plane.api.get(f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={name}")["items"] or []
    return [f"{event['reason']}: {event.get('message') or event.get('note')}" for event in found]


def states_of(objects: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """By the twins among these objects."""
    return {
        item["metadata"]["name"]: item["status"]["schedulableClass"] for item in objects if item["kind"] == "NodeTwin"
    }
