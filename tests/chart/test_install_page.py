"""The commands of docs/how-to/install.md, run in their order on a real API server by a reader who changes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.chart.charts import CHART, NAMESPACE, RELEASE, Helm
from tests.chart.leftovers import forget, wait_unguarded
from tests.docs_pages.blocks import blocks
from tests.extender.scheduler.scheduling import create, node
from tests.support.howto_pages import FOLDER, files_of

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

PAGE = FOLDER / "install.md"
# How commands begin that are not run here, and why.
NOT_RUN = {
    "docker ": "there is no container engine; tests/image builds the Dockerfile with buildah",
    "joulie doctor": "finds that no pod runs; tests/cli has a healthy cluster",
    "kubectl -n joulie-system port-forward": "there is no pod to forward to",
    "helm test": "needs a kubelet for its pod; test_life.py stands in for it",
    "helm uninstall": "needs a kubelet for its job; test_life.py stands in for it",
    "joulie cleanup --crds": "asks first; test_life.py says yes",
    "kubectl delete namespace": "no controller here empties namespaces",
}


COMMANDS = [command.text for block in blocks(PAGE) for command in block.commands()]


def test_what_is_not_run_is_on_the_page() -> None:
    assert [start for start in NOT_RUN if not any(one.startswith(start) for one in COMMANDS)] == []


def test_every_command_of_the_page_works(reader: subprocess.CompletedProcess[str]) -> None:
    assert reader.returncode == 0, reader.stdout + reader.stderr
    assert reader.stdout.count("has been upgraded") == 4
    assert "DRY RUN" in reader.stdout
    assert "deployment.apps/joulie-operator configured (server dry run)" in reader.stdout


@pytest.fixture
def reader(
    fresh_cluster: ControlPlane, helm_binary: Path, kubectl: Path, tmp_path: Path
) -> Iterator[subprocess.CompletedProcess[str]]:
    """What came of running all blocks that are meant to be run."""
    forget(fresh_cluster)
    create(fresh_cluster, [node(f"node-{number}") for number in (1, 2, 3)])
    (tmp_path / "deploy").symlink_to(CHART.parents[1])
    for name, text in files_of(PAGE.name).items():
        (tmp_path / name).write_text(text)
    script = "set -euxo pipefail\n" + "\n".join(one for one in COMMANDS if not one.startswith(tuple(NOT_RUN)))
    folders = [str(path.parent) for path in (helm_binary, kubectl, Path(sys.executable))]
    environment = {
        "PATH": os.pathsep.join([*folders, "/usr/bin", "/bin"]),
        "HOME": str(tmp_path),
        "KUBECONFIG": str(fresh_cluster.kubeconfig),
    }
    yield subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    helm = Helm(helm_binary, tmp_path, fresh_cluster.kubeconfig)
    helm.run("uninstall", RELEASE, "--namespace", NAMESPACE, "--no-hooks", "--ignore-not-found")
    forget(fresh_cluster)
    wait_unguarded(fresh_cluster)
