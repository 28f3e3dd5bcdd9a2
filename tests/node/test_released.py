"""What `make release` makes, installed as people would: packaged chart, released image, and the plug-in as one file."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from joulie import __version__
from tests.chart.charts import NAMESPACE, RELEASE
from tests.chart.kubelet import until
from tests.node.release import AGENTS_LEVEL, READY_S, Release, node_labels
from tests.support.released import REGISTRY


@pytest.fixture
def artefacts(release: Release, released: Path) -> Iterator[Path]:
    (archive,) = released.glob(f"joulie-{__version__}-image-linux-*.oci.tar")
    release.node.import_image(archive)
    name = f"joulie:{__version__}"  # as if it had been pushed to the registry
    done = release.node.run("ctr", "--namespace=k8s.io", "images", "tag", f"localhost/{name}", f"{REGISTRY}/{name}")
    assert done.code == 0, done.errors
    node_labels(release.node, **{"joulie.io/managed": "true"})
    yield released
    release.remove()
    node_labels(release.node, **{"joulie.io/managed": None})


def test_the_packaged_chart_runs_the_released_image_and_the_plug_in_looks_at_it(
    artefacts: Path, release: Release, tmp_path: Path
) -> None:
    release.make_namespace(AGENTS_LEVEL)
    release.helm.run("install", RELEASE, str(artefacts / f"joulie-{__version__}.tgz"), "--namespace", NAMESPACE)
    until(release.is_ready, "every pod is Ready", READY_S)
    images = {one["spec"]["containers"][0]["image"] for one in release.pods()}
    assert images == {f"{REGISTRY}/joulie:{__version__}"}
    release.helm.run("test", RELEASE, "--namespace", NAMESPACE)

    (packed,) = artefacts.glob("kubectl-joulie-linux-*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path, filter="data")
    environment = {"PATH": f"{sys.base_prefix}/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    command = [str(tmp_path / "kubectl-joulie"), "status", "--kubeconfig", str(release.node.kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/", check=False)
    assert done.returncode == 0, done.stderr
    assert release.node.name in done.stdout or "1 node" in done.stdout, done.stdout
