"""The extender needs exactly the rights of `deploy/rbac/extender.yaml`; those of the second scheduler suffice."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.extender.scheduler.processes import RunningExtender, wait_until
from tests.extender.scheduler.scheduling import SECOND, SHIPPED, create, node, pod, shipped, twin, wait_placed
from tests.support.rights import NAMESPACE, Right, Rights

if TYPE_CHECKING:
    from testbed.api import Api
    from testbed.control_plane import ControlPlane

FORBIDDEN = 403
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/joulie-scheduler"


def test_with_these_rights_it_knows_everything_and_is_refused_nothing(
    fresh_cluster: ControlPlane, tmp_path: Path
) -> None:
    create(fresh_cluster, [node("a"), twin("a", "performance", 80)])
    with RunningExtender(fresh_cluster, tmp_path) as extender:
        assert extender.scores(pod("any", performance=True), ["a"]) == {"a": 71}
        create(fresh_cluster, [node("b"), twin("b", "eco", 60), pod("p", nodeName="b")])
        wait_until(lambda: extender.classes() == {"a": "performance", "b": "eco"}, 20, "what is new is known")
        wait_until(lambda: extender.ask("GET", "/debug/scoring?pod=default/p")[0] == 200, 20, "the pod is known")
        assert "cannot" not in extender.log_file.read_text()


@pytest.mark.parametrize("right", Rights("extender").all(), ids=str)
def test_without_any_one_right_it_is_refused_what_it_needs(
    fresh_cluster: ControlPlane, tmp_path: Path, right: Right
) -> None:
    with RunningExtender(
        fresh_cluster, tmp_path, token=Rights("extender").grant(fresh_cluster, without=right), wait=False
    ) as extender:
        refusal = f'cannot {right.verb} resource \\"{right.resource}\\"'
        wait_until(lambda: refusal in extender.log_file.read_text(), 20, f"it is refused to {right}")
        if right.verb == "list" and right.resource == "powerbudgets":
            wait_until(extender.ready, 20, "it serves without budgets")  # as before an upgrade of definitions and roles
        elif right.verb == "list":
            assert not extender.ready()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/configmaps"),
        ("GET", "/api/v1/nodes/a"),
        ("PATCH", "/api/v1/nodes/a"),
        ("PATCH", "/api/v1/nodes/a/status"),
        ("DELETE", "/api/v1/namespaces/default/pods/p"),
        ("PATCH", "/api/v1/namespaces/default/pods/p"),
        ("POST", "/api/v1/namespaces/default/pods/p/binding"),
        ("POST", "/api/v1/namespaces/default/pods/p/eviction"),
        ("POST", "/api/v1/namespaces/default/events"),
        ("PATCH", "/apis/joulie.io/v1alpha1/nodetwins/a"),
        ("PATCH", "/apis/joulie.io/v1alpha1/nodetwins/a/status"),
        ("GET", "/apis/joulie.io/v1alpha1/nodepowerprofiles"),
        ("GET", "/apis/coordination.k8s.io/v1/leases"),
    ],
)
def test_it_can_do_no_more(allowed: Api, method: str, path: str) -> None:
    from testbed.api import ApiError

    body: dict[str, Any] | None = None if method in ("GET", "DELETE") else {}
    with pytest.raises(ApiError) as refusal:
        allowed.raw(method, path, body, "application/merge-patch+json" if method == "PATCH" else "")
    assert refusal.value.status == FORBIDDEN


@pytest.fixture
def allowed(fresh_cluster: ControlPlane) -> Api:
    """The API server as the extender's account sees it."""
    return fresh_cluster.api_as(Rights("extender").grant(fresh_cluster))


@pytest.fixture
def schedulers_token(fresh_cluster: ControlPlane) -> str:
    Rights("extender").grant(fresh_cluster)  # for the namespace
    fresh_cluster.apply(yaml.safe_load_all((SHIPPED / "second-scheduler-rbac.yaml").read_text()))
    return fresh_cluster.service_account_token(NAMESPACE, "joulie-scheduler")


def test_the_second_scheduler_leads_and_binds_with_the_rights_that_are_shipped(
    fresh_cluster: ControlPlane, schedulers_token: str
) -> None:
    from testbed.build import binaries
    from testbed.credentials import write_kubeconfig
    from testbed.processes import Processes
    from testbed.scheduler import Scheduler

    create(fresh_cluster, [node("a")])
    election = yaml.safe_load((SHIPPED / SECOND).read_text())["leaderElection"]
    processes = Processes(Path(tempfile.mkdtemp(prefix="joulie-scheduler-")))
    try:
        plane = fresh_cluster
        config = write_kubeconfig(processes.folder / "kubeconfig", plane.url, plane.ca_file, schedulers_token)
        binary = binaries(["kube-scheduler"])["kube-scheduler"]
        with Scheduler(binary, processes, config, shipped() | {"leaderElection": election}) as scheduler:
            create(fresh_cluster, [pod("ours"), pod("others", scheduler="default-scheduler")])
            assert wait_placed(fresh_cluster, ["ours"]) == {"ours": "a"}
            assert fresh_cluster.api.get(LEASE)["spec"]["holderIdentity"]
            assert "others" not in wait_placed(fresh_cluster, ["ours"])
            assert "forbidden" not in scheduler.process.log.read_text().lower()
    finally:
        processes.close()
