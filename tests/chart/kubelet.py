"""What kubelet and controllers would do with the chart's workloads, by hand: each pod is a process.

A process gets the arguments, variables and service account of its pod template as it lies on the API server, so its
rights are the chart's. Where a container would see mounts and names of services, it gets folders and loopback ports.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.processes import free_port
from tests.agent.agent_processes import JoulieProcess
from tests.chart.charts import NAMESPACE, Helm, Manifest, container, pod_template

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

PLURALS = {"Deployment": "deployments", "DaemonSet": "daemonsets", "StatefulSet": "statefulsets", "Job": "jobs"}
JOB = "joulie-cleanup"
ATTEMPTS = 4  # a job's backoffLimit of 3
PATIENCE_S = 180.0


class Kubelet:
    """Starts and stops processes as the workloads of the release say."""

    def __init__(self, plane: ControlPlane, folder: Path, ends: ExitStack) -> None:
        self.plane = plane
        self.folder = folder
        folder.mkdir()
        self.running: dict[str, JoulieProcess] = {}
        self.ports: dict[str, int] = {}  # of addresses that others call, by variable
        self._ends = ends

    def start(
        self, kind: str, name: str, *, node: str = "", mounts: Mapping[str, Path] | None = None, **local: str
    ) -> JoulieProcess:
        """A pod of this workload, as its newest template has it; an older one is stopped first."""
        if name in self.running:
            self.stop(name)
        workload = self.workload(kind, name)
        if workload is None:
            raise AssertionError(f"there is no {kind} {name}")
        settings = self._environment(workload, f"{name}-0", node, mounts or {}) | local
        arguments = container(workload)["args"]
        process = JoulieProcess([sys.executable, "-m", "joulie", *arguments], self.folder, name, settings)
        self.running[name] = self._ends.enter_context(process)
        return process

    def stop(self, name: str) -> None:
        """As the end of its pod: SIGTERM, then the grace period of its template."""
        assert self.running.pop(name).stop(120) == 0, name

    def workload(self, kind: str, name: str) -> Manifest | None:
        """As it is on the API server, None where it is not."""
        from testbed.api import ApiError

        group = "batch" if kind == "Job" else "apps"
        try:
            found: Manifest = self.plane.api.get(f"/apis/{group}/v1/namespaces/{NAMESPACE}/{PLURALS[kind]}/{name}")
        except ApiError as error:
            if error.status != 404:
                raise
            return None
        return found

    @contextmanager
    def pods_seen(self, node: str, *others: str) -> Iterator[None]:
        """In this block every process that runs has a Ready pod on this node, and its workload says so."""
        seen = [
            (kind, name)
            for name in (*self.running, *others)
            for kind in PLURALS
            if self.workload(kind, name) is not None
        ]
        for kind, name in seen:
            self._show_pods(kind, name, node)
        try:
            yield
        finally:
            pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
            self.plane.api.delete(f"{pods}?gracePeriodSeconds=0&labelSelector=app.kubernetes.io/name=joulie")

    def _show_pods(self, kind: str, name: str, node: str) -> None:
        workload = self.workload(kind, name)
        assert workload is not None
        template, number = pod_template(workload), workload["spec"]["replicas"]
        claims = workload["spec"].get("volumeClaimTemplates", ())
        volumes = template["spec"]["volumes"] + [{"name": one["metadata"]["name"], "emptyDir": {}} for one in claims]
        spec = {**template["spec"], "volumes": volumes, "nodeName": node}
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        for ordinal in range(number):
            metadata = {**template["metadata"], "name": f"{name}-{ordinal}", "namespace": NAMESPACE}
            self.plane.apply(
                [{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}]
            )
        counts = ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas")
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/{PLURALS[kind]}/{name}/status"
        self.plane.api.patch(path, {"status": dict.fromkeys(counts, number)})

    def port_of(self, variable: str) -> int:
        return self.ports.setdefault(variable, free_port())

    def uninstall(self, helm: Helm) -> str:
        """`helm uninstall`, its job run here; what the job printed."""
        process = helm.start("uninstall", "joulie", "--namespace", NAMESPACE, "--timeout", "4m")
        try:
            until(lambda: self.workload("Job", JOB) is not None or process.poll() is not None, "the job is there")
            said = self._run_job()
            output, _ = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0, output
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
        for name in list(self.running):  # what is left of the release was deleted a moment ago
            self.stop(name)
        return said

    def run_test(self, helm: Helm) -> str:
        """`helm test`, its pod run here; what the pod printed."""
        process = helm.start("test", "joulie", "--namespace", NAMESPACE, "--timeout", "2m")
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/joulie-test"
        try:
            until(lambda: self._pod(path) is not None or process.poll() is not None, "the pod is there")
            pod = self._pod(path)
            assert pod is not None, process.communicate()[0]
            like_workload = {"spec": {"template": {"spec": pod["spec"]}}}
            environment = {"PATH": "/usr/bin:/bin", **self._environment(like_workload, "joulie-test", "", {})}
            command = [sys.executable, "-m", "joulie", *container(like_workload)["args"]]
            done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
            phase = "Succeeded" if done.returncode == 0 else "Failed"
            self.plane.api.patch(f"{path}/status", {"status": {"phase": phase}})
            output, _ = process.communicate(timeout=PATIENCE_S)
            assert (process.returncode == 0) == (done.returncode == 0), output
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
        return done.stdout

    def _pod(self, path: str) -> Manifest | None:
        from testbed.api import ApiError

        try:
            found: Manifest = self.plane.api.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            return None
        return found

    def _run_job(self) -> str:
        job = self.workload("Job", JOB)
        assert job is not None
        log = self.folder / "cleanup.log"
        for _ in range(ATTEMPTS):
            command = [sys.executable, "-m", "joulie", *container(job)["args"]]
            with log.open("ab") as output:
                cleanup = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env={"PATH": "/usr/bin:/bin", **self._environment(job, JOB, "", {})},
                )
            while cleanup.poll() is None:
                self._follow()
                time.sleep(0.1)
            if cleanup.wait() == 0:
                self._complete()
                return log.read_text()
        raise AssertionError(f"the cleanup job failed {ATTEMPTS} times:\n{log.read_text()}")

    def _follow(self) -> None:
        """Pods end where their workload is scaled to nothing or gone."""
        kinds = {"joulie-operator": ["Deployment"], "joulie-agent": ["DaemonSet", "StatefulSet"]}
        for name in [name for name in kinds if name in self.running]:
            found = [workload for kind in kinds[name] if (workload := self.workload(kind, name)) is not None]
            if not found or found[0]["spec"].get("replicas") == 0:
                self.stop(name)

    def _complete(self) -> None:
        """As the job controller says that a job is done."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        done = [
            {
                "type": kind,
                "status": "True",
                "lastProbeTime": now,
                "lastTransitionTime": now,
                "reason": "CompletionsReached",
            }
            for kind in ("SuccessCriteriaMet", "Complete")
        ]
        status = {"startTime": now, "completionTime": now, "succeeded": 1, "conditions": done}
        self.plane.api.patch(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{JOB}/status", {"status": status})

    def _environment(self, workload: Manifest, pod_name: str, node: str, mounts: Mapping[str, Path]) -> dict[str, str]:
        from testbed.credentials import write_kubeconfig

        spec = pod_template(workload)["spec"]
        account = spec["serviceAccountName"]
        token = self.plane.pod_token(NAMESPACE, account, node)
        config = write_kubeconfig(self.folder / f"{account}.config", self.plane.url, self.plane.ca_file, token)
        of_pod = {"metadata.name": pod_name, "metadata.namespace": NAMESPACE, "spec.nodeName": node}
        variables = {one["name"]: _value(one, of_pod) for one in container(workload)["env"]}
        places = {
            mount["mountPath"]: mounts.get(mount["mountPath"], self.folder / account / mount["name"])
            for mount in container(workload)["volumeMounts"]
        }
        for outside in places.values():
            outside.mkdir(parents=True, exist_ok=True)
        variables = {name: _outside(value, places) for name, value in variables.items()}
        simulator = f"joulie-simulator.{NAMESPACE}.svc:18080"
        here = f"127.0.0.1:{self.port_of('SIM_ADDR')}"
        variables = {name: value.replace(simulator, here) for name, value in variables.items()}
        listening = {name: f"127.0.0.1:{self.port_of(name)}" for name in ("SIM_ADDR", "EXTENDER_ADDR")}
        return {**variables, **listening, "KUBECONFIG": str(config), "HOME": str(self.folder)}


def _value(variable: Mapping[str, Any], of_pod: Mapping[str, str]) -> str:
    if "value" in variable:
        return str(variable["value"])
    return of_pod[variable["valueFrom"]["fieldRef"]["fieldPath"]]


def _outside(value: str, places: Mapping[str, Path]) -> str:
    """A path in the container as one on this machine."""
    for inside, outside in places.items():
        if value == inside or value.startswith(f"{inside}/"):
            return str(outside) + value.removeprefix(inside)
    return value


def until(condition: Callable[[], object], what: str, timeout_s: float = PATIENCE_S) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"after {timeout_s:g} s still not: {what}")
        time.sleep(0.1)
