"""What only a real API server can show: TLS, a server that freezes, versions that really expire."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from joulie.cluster.api.cluster import KubernetesCluster
from joulie.cluster.api.credentials import Credentials, find_credentials, trusting
from joulie.cluster.decoding.decoders import decode_node, decode_pod
from joulie.cluster.port import NODES, PODS, ClusterError
from joulie.cluster.watch.list_watch import GONE, Scope
from tests.cluster.clusters import hasty
from tests.cluster.watching import Notes, following, run, watch
from tests.support.static_token import StaticToken

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane


def credentials(plane: ControlPlane) -> Credentials:
    return Credentials(plane.url, StaticToken(plane.admin_token), ssl_context=trusting(plane.ca_file))


def test_a_server_that_freezes_is_noticed_and_found_again(fresh_cluster: ControlPlane) -> None:
    async def scenario() -> None:
        notes = Notes()
        cluster = KubernetesCluster(
            credentials(fresh_cluster), observer=notes, timeout_s=2.0, watch_idle_s=3.0, backoff=hasty
        )
        async with watch(cluster, NODES) as reader:
            await reader.synced()
            await cluster.create(NODES, {"metadata": {"name": "seen-by-the-watch"}})
            await reader.until(lambda: bool(reader.objects))
            with fresh_cluster.frozen_apiserver():
                began_s = time.monotonic()
                with pytest.raises(ClusterError, match=r"no answer within 2\.0 s"):
                    await cluster.create(NODES, {"metadata": {"name": "a"}})
                assert time.monotonic() - began_s < 30.0
                await reader.until(lambda: any("no answer within 3.0 s" in reason for reason, _ in notes.failures))
            with_luck = {"metadata": {"name": "b"}}
            while "b" not in reader.objects:
                try:
                    await cluster.create(NODES, with_luck)
                except ClusterError:
                    await asyncio.sleep(0.1)
            assert set(reader.objects) <= {"seen-by-the-watch", "a", "b"}
        await cluster.close()

    run(scenario())


def test_closing_does_not_wait_for_a_frozen_server(fresh_cluster: ControlPlane) -> None:
    async def scenario() -> None:
        cluster = KubernetesCluster(credentials(fresh_cluster))
        async with watch(cluster, NODES) as reader:
            await reader.synced()
            with fresh_cluster.frozen_apiserver():
                began_s = time.monotonic()
                await cluster.close()
                await reader.until(lambda: reader.ended)
                assert time.monotonic() - began_s < 8.0  # a call may take 10 s

    run(scenario())


def test_a_version_from_before_a_compaction_is_gone(fresh_cluster: ControlPlane) -> None:
    async def scenario() -> None:
        cluster = KubernetesCluster(credentials(fresh_cluster), timeout_s=30.0)
        old = (await cluster.list_page(Scope(NODES), "")).resource_version
        await cluster.create(NODES, {"metadata": {"name": "a"}})
        fresh_cluster.stop_apiserver()
        fresh_cluster.compact_etcd()
        fresh_cluster.start_apiserver()
        with pytest.raises(ClusterError) as caught:
            await asyncio.wait_for(anext(cluster.watch_from(Scope(NODES), old)), 10)
        assert caught.value.status == GONE
        await cluster.close()

    run(scenario())


def test_a_wrong_token_and_a_wrong_authority_are_named(fresh_cluster: ControlPlane) -> None:
    async def refused(credentials: Credentials) -> ClusterError:
        cluster = KubernetesCluster(credentials)
        with pytest.raises(ClusterError) as caught:
            await cluster.get(NODES, "a")
        await cluster.close()
        return caught.value

    plane = fresh_cluster
    stranger = Credentials(plane.url, StaticToken("nobody"), ssl_context=trusting(plane.ca_file))
    assert run(refused(stranger)).status == 401
    gullible = Credentials(plane.url, StaticToken(plane.admin_token), ssl_context=trusting(None))
    error = run(refused(gullible))
    assert error.status == 0
    assert "certificate" in str(error)


def test_a_kubeconfig_leads_to_the_server_and_real_objects_decode(fresh_cluster: ControlPlane) -> None:
    async def scenario() -> None:
        cluster = KubernetesCluster(find_credentials({}, kubeconfig=str(fresh_cluster.kubeconfig)))
        node = {"metadata": {"name": "a", "labels": {"x": "y"}}, "status": {"capacity": {"cpu": "8"}}}
        await cluster.create(NODES, node)
        pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "a", "containers": [{"name": "c", "image": "i"}]}}
        await cluster.create(PODS, pod, namespace="default")
        async with (
            following(cluster.watch(NODES, decode_node)) as nodes,
            following(cluster.watch(PODS, decode_pod)) as pods,
        ):
            await nodes.synced()
            await pods.synced()
            assert nodes.objects["a"].capacity_cores == 8.0
            assert pods.objects["default/p"].node == "a"
        await cluster.close()

    run(scenario())
