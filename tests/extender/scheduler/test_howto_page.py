"""What docs/how-to/scheduler.md shows can be applied as it stands, and does what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from tests.extender.scheduler.admission import admitted, policy_installed
from tests.extender.scheduler.scheduling import SECOND, SHIPPED
from tests.support.howto_pages import files_of
from tests.support.rights import Rights

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

PAGE = {name: yaml.safe_load(text) for name, text in files_of("scheduler.md").items()}


def test_the_deployment_of_the_second_scheduler_is_taken(fresh_cluster: ControlPlane) -> None:
    Rights("extender").grant(fresh_cluster)  # for the namespace
    deployment = PAGE["joulie-scheduler.yaml"]
    path = (
        f"/apis/apps/v1/namespaces/{deployment['metadata']['namespace']}/deployments?dryRun=All&fieldValidation=Strict"
    )
    fresh_cluster.api.post(path, deployment)
    config = yaml.safe_load((SHIPPED / SECOND).read_text())
    assert config["leaderElection"]["resourceNamespace"] == deployment["metadata"]["namespace"]
    assert PAGE["pod.yaml"]["spec"]["schedulerName"] == config["profiles"][0]["schedulerName"]


def test_the_pod_gets_the_rule_that_the_page_shows_for_clusters_without_the_policy(fresh_cluster: ControlPlane) -> None:
    with policy_installed(fresh_cluster):
        assert admitted(fresh_cluster, PAGE["pod.yaml"])["spec"]["affinity"] == PAGE["affinity.yaml"]["affinity"]
