"""Clusters whose definitions are those of an older version, as Helm alone leaves them, or that have none at all."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from msgspec import json

from joulie.cluster.api.cluster import KubernetesCluster
from joulie.cluster.crds.definitions import crds
from joulie.cluster.patches import apply_status
from joulie.cluster.port import NODE_TWINS, ClusterError
from testbed.api import ApiError
from tests.cluster.api.test_real_server import credentials
from tests.cluster.clusters import twin
from tests.cluster.test_contract_apply import condition
from tests.cluster.watching import run

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodetwins.joulie.io"
STATUS = {"schedulableClass": "eco", "conditions": [condition("Draining", "False")]}


def test_what_the_definition_lacks_is_left_out_and_the_rest_is_written(fresh_cluster: ControlPlane) -> None:
    ours = fresh_cluster.api.get(DEFINITION)["spec"]
    fresh_cluster.api.put(DEFINITION, {**fresh_cluster.api.get(DEFINITION), "spec": without_conditions(ours)})
    try:
        run(asyncio.wait_for(scenario(fresh_cluster), 60))
    finally:
        replace_spec(fresh_cluster, ours)


def test_a_dry_run_needs_no_definitions(fresh_cluster: ControlPlane) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"joulie.io/managed": "true"}}}
    fresh_cluster.apply([node])
    for one in crds():
        fresh_cluster.api.delete(f"{DEFINITION.rpartition('/')[0]}/{one['metadata']['name']}")
    try:
        command = [sys.executable, "-m", "joulie", "operator", "--once", "--dry-run"]
        command += ["--kubeconfig", str(fresh_cluster.kubeconfig)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    finally:
        fresh_cluster.install_crds()
    assert done.returncode == 0, done.stderr
    assert any('"NodeTwin"' in line and '"n1"' in line for line in done.stdout.splitlines()), done.stdout


async def scenario(plane: ControlPlane) -> None:
    cluster = KubernetesCluster(credentials(plane))
    try:
        await cluster.create(NODE_TWINS, twin("a"))
        while not await is_refused(cluster):  # a changed definition takes a moment to act
            await asyncio.sleep(0.1)
        answer = await apply_status(cluster, NODE_TWINS, "a", STATUS, owned=["schedulableClass"])
        assert json.decode(answer)["status"] == {"schedulableClass": "eco"}
    finally:
        await cluster.close()


async def is_refused(cluster: KubernetesCluster) -> bool:
    try:
        await cluster.apply_status(NODE_TWINS, "a", STATUS)
    except ClusterError as error:
        return "not declared in schema" in str(error)
    await cluster.patch(NODE_TWINS, "a", {"status": {"conditions": None}}, status=True)
    return False


def without_conditions(spec: dict[str, Any]) -> dict[str, Any]:
    older: dict[str, Any] = json.decode(json.encode(spec))
    for version in older["versions"]:
        del version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["conditions"]
    return older


def replace_spec(plane: ControlPlane, spec: dict[str, Any]) -> None:
    for _ in range(10):  # the server itself writes to its status
        try:
            plane.api.put(DEFINITION, {**plane.api.get(DEFINITION), "spec": spec})
        except ApiError as error:
            if error.status != 409:
                raise
        else:
            return
