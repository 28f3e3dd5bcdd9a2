"""A healthy installation on the test control plane: processes that really run, and the objects that Kubernetes would
keep for them if it had kubelets and controllers here."""

from __future__ import annotations

import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from joulie import __version__
from testbed.api import ApiError
from testbed.processes import free_port
from tests.agent.agent_processes import CommandProcess
from tests.agent.chain import JOULIE, Chain
from tests.support.cli_runner import Outcome, joulie
from tests.support.rights import NAMESPACE, Rights

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

Object = dict[str, Any]
ROOT = Path(__file__).parents[2]
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/joulie-operator"
NODES = 6
PATIENCE_S = 60.0


class Installation:
    """Six simulated machines with operator, agent and extender, as the chart would have installed them."""

    def __init__(self, plane: ControlPlane, folder: Path, ends: ExitStack) -> None:
        self.plane, self.folder, self._ends = plane, folder, ends
        self.lease_is_planted = False
        self.chain = Chain(plane, folder, NODES, ends)
        telemetry = f"http://127.0.0.1:{self.chain.sim_port}/telemetry/{{node}}"
        self.operator = self.chain.operator(
            0.5,
            OPERATOR_NODE_POWER_SOURCE="http",
            OPERATOR_NODE_POWER_HTTP_ENDPOINT=telemetry,
            TWIN_REFRESH_INTERVAL="5s",  # what a test put back is soon the operator's own again
        )
        self.agent = self.chain.agent(0, 1, RECONCILE_INTERVAL="1s")
        self.wait_until(self._settled, "every cap is applied")

    @property
    def names(self) -> list[str]:
        return self.chain.names

    def run(self, *arguments: str, **env: str) -> Outcome:
        """One command of the command line, as an administrator."""
        return self.run_as(self.plane.kubeconfig, *arguments, **env)

    def run_as(self, kubeconfig: Path, *arguments: str, **env: str) -> Outcome:
        return joulie(*arguments, env={"KUBECONFIG": str(kubeconfig), "HOME": str(self.folder), **env})

    def twin(self, node: str) -> Object:
        return dict(self.plane.api.get(f"{JOULIE}/nodetwins/{node}"))

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        self.operator.wait_until(condition, PATIENCE_S, what)

    def settle(self) -> None:
        """Until the policy speaks for every node again, and its caps are in force."""
        self.wait_until(
            lambda: (
                len(twins := self.chain.twins()) == len(self.names)
                and all(_is_as_planned(twin) for twin in twins.values())
            ),
            "the policy decides about every node, and what it decided is enforced",
        )

    def freeze(self) -> None:
        """Operator and agent stand still, so that what a test writes stays as it is."""
        for process in (self.operator, self.agent):
            process.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        for process in (self.operator, self.agent):
            process.process.send_signal(signal.SIGCONT)

    def extender(self, name: str, *, asked: bool) -> None:
        """An extender process, and the pod that it would be."""
        port = free_port()
        settings = {"EXTENDER_ADDR": f":{port}", "METRICS_ADDR": f":{port}"}
        process = self._ends.enter_context(CommandProcess(self.plane, self.folder, name, "extender", **settings))
        process.wait_until(lambda: _answers(port), PATIENCE_S, "the extender is ready")
        if asked:
            body = b'{"Pod": {"metadata": {"name": "a", "namespace": "b"}, "spec": {}}, "NodeNames": ["node-00000"]}'
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/filter", body, timeout=10) as answer:
                assert answer.status == 200
        self.plane.apply([extender_pod(name, port)])

    def install_objects(self) -> None:
        """What the chart installs and controllers would report of it."""
        for component in ("operator", "extender"):
            Rights(component).grant(self.plane)
        self.plane.apply([workload("Deployment", "operator"), workload("Deployment", "extender")])
        self.plane.apply([workload("DaemonSet", "agent")])
        self.plane.apply(yaml.safe_load_all((ROOT / "deploy/admission/performance-affinity.yaml").read_text()))
        self.extender("joulie-extender-0", asked=True)

    def renew_lease(self) -> None:
        """What the frozen operator would do."""
        self.plane.api.patch(LEASE, {"spec": {"renewTime": micro(time.time())}})

    def renew_lease_unless_planted(self) -> None:
        if not self.lease_is_planted:
            self.renew_lease()

    @contextmanager
    def changed(self, path: str, patch: Mapping[str, Any], part: str = "") -> Iterator[None]:
        """The object with a merge patch of it, or of its status, in this block."""
        before = self.plane.api.get(path)
        self.plane.api.patch(path + part, patch)
        try:
            yield
        finally:
            self.plane.apply([before])

    @contextmanager
    def removed(self, path: str) -> Iterator[None]:
        before = self.plane.api.get(path)
        self.plane.api.delete(f"{path}?gracePeriodSeconds=0")
        try:
            yield
        finally:
            self.plane.apply([before])

    @contextmanager
    def added(self, *objects: Object) -> Iterator[None]:
        self.plane.apply(objects)
        try:
            yield
        finally:
            for item in objects:
                path = self.plane.api.resource_path(item["apiVersion"], item["kind"]).of(item)
                try:
                    self.plane.api.delete(f"{path}/{item['metadata']['name']}?gracePeriodSeconds=0")
                except ApiError as error:  # a next step that was tried may have removed it already
                    if error.status != 404:
                        raise

    def _settled(self) -> bool:
        said = self.chain.said()
        return len(said) == NODES and set(said.values()) == {"applied"}


def micro(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def labels(component: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "joulie",
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/version": __version__,
    }


def workload(kind: str, component: str) -> Object:
    containers = [{"name": component, "image": "joulie", "args": [component]}]
    template = {
        "metadata": {"labels": labels(component)},
        "spec": {"serviceAccountName": f"joulie-{component}", "containers": containers},
    }
    daemon = kind == "DaemonSet"
    counts = ("currentNumberScheduled", "desiredNumberScheduled", "numberReady", "numberAvailable")
    status = dict.fromkeys(counts, NODES) | {"numberMisscheduled": 0}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": f"joulie-{component}", "namespace": NAMESPACE, "labels": labels(component)},
        "spec": {"selector": {"matchLabels": labels(component)}, "template": template}
        | ({} if daemon else {"replicas": 1}),
        "status": status if daemon else {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1},
    }


def training(node: str) -> Object:
    """A pod that keeps a node from becoming eco for as long as it runs there."""
    annotations = {"joulie.io/workload-class": "performance"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "training", "namespace": "default", "annotations": annotations},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
    }


def extender_pod(name: str, port: int) -> Object:
    ports = [{"name": "metrics", "containerPort": port}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels("extender")},
        "spec": {"nodeName": "node-00000", "containers": [{"name": "extender", "image": "joulie", "ports": ports}]},
        "status": {
            "phase": "Running",
            "podIP": own_address(),
            "podIPs": [{"ip": own_address()}],
            "startTime": seconds(time.time() - 60),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def own_address() -> str:
    """An address of this machine that is not loopback, to which the API server does not proxy. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return str(probe.getsockname()[0])


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
            return True
    except (OSError, urllib.error.HTTPError):
        return False


def _is_as_planned(twin: dict[str, Any]) -> bool:
    conditions = {one["type"]: one for one in twin.get("status", {}).get("conditions", ())}
    enforced = conditions.get("Enforced", {})
    seen = (twin["spec"]["policy"]["name"], enforced.get("status"), enforced.get("observedGeneration"))
    return seen == ("static_partition", "True", twin["metadata"]["generation"])
