"""Two nodes with all their objects, under the policies that the chart installs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.chart.admission.accounts import JOULIE, SCENE, grant, installed, trying
from tests.chart.charts import Helm
from tests.chart.kubelet import until
from tests.chart.leftovers import wait_unguarded
from tests.extender.scheduler.scheduling import create
from tests.support.rights import NAMESPACE

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

POLICIES = ("joulie-agent-own-node", "joulie-node-fields", "joulie-twin-spec")
ACCOUNTS = ("joulie-agent", "joulie-operator", "joulie-cleanup")


@pytest.fixture(scope="module")
def scene(
    control_plane: ControlPlane, helm_binary: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """The policies in force for agents of a DaemonSet; every account is a cluster administrator besides."""
    from testbed.cleaning import clear

    control_plane.start_apiserver()
    clear(control_plane)
    create(control_plane, SCENE)
    for account in ACCOUNTS:
        grant(control_plane, account, everything=True)
    helm = Helm(helm_binary, tmp_path_factory.mktemp("helm"))
    with installed(control_plane, helm.render(), *POLICIES):
        tries = trying(control_plane, control_plane.pod_token(NAMESPACE, "joulie-agent", "mine"))
        until(lambda: bool(tries("PATCH", f"{JOULIE}/nodehardwares/other/status", {"status": {}})), "agents are bound")
        tries = trying(control_plane, control_plane.service_account_token(NAMESPACE, "joulie-operator"))
        until(lambda: bool(tries("PATCH", "/api/v1/nodes/mine", {"spec": {"unschedulable": True}})), "labels alone")
        tries = trying(control_plane, control_plane.admin_token)
        until(
            lambda: bool(tries("PATCH", f"{JOULIE}/nodetwins/mine", {"spec": {"profile": "performance"}})),
            "twins are kept",
        )
        yield control_plane
    wait_unguarded(control_plane)
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    for account in ACCOUNTS:
        control_plane.api.delete(f"{bindings}/{account}-everything")
    clear(control_plane)
