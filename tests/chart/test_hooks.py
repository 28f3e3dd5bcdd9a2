"""What the chart does beside installing: definitions that follow an upgrade, and `helm test`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from joulie.cluster.crds.definitions import KINDS, VERSION, crds
from testbed.credentials import write_kubeconfig
from tests.chart.charts import CHART, POLICY_API, Helm, container, find, named
from tests.extender.scheduler.scheduling import create, twin
from tests.support.rights import Rights

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TWINS, PINS = "nodetwins.joulie.io", "nodepowerprofiles.joulie.io"
DEPLOY = CHART.parents[1]


def test_the_upgrade_job_updates_definitions_with_no_more_than_its_rights(
    fresh_cluster: ControlPlane, tmp_path: Path
) -> None:
    plane = fresh_cluster
    token = Rights("crds").grant(plane)
    config = write_kubeconfig(tmp_path / "config", plane.url, plane.ca_file, token)
    create(plane, [twin("node-1", "eco")])
    older = plane.api.get(f"{DEFINITIONS}/{TWINS}")
    older["spec"]["versions"][0]["additionalPrinterColumns"] = []
    plane.api.put(f"{DEFINITIONS}/{TWINS}", older)
    plane.api.delete(f"{DEFINITIONS}/{PINS}")

    tried = crds_apply(config, "--dry-run")
    assert f"{TWINS} updated (dry run)" in tried.stdout
    assert not plane.api.get(f"{DEFINITIONS}/{TWINS}")["spec"]["versions"][0].get("additionalPrinterColumns")

    outcome = crds_apply(config)
    assert outcome.returncode == 0, outcome.stderr
    words = dict(line.split(" ", 1) for line in outcome.stdout.splitlines())
    others = {crd["metadata"]["name"]: "unchanged" for crd in crds()}
    assert words == {**others, TWINS: "updated", PINS: "created"}
    assert plane.api.get(f"{DEFINITIONS}/{TWINS}")["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [one["metadata"]["name"] for one in plane.api.get("/apis/joulie.io/v1alpha1/nodetwins")["items"]] == [
        "node-1"
    ]


def test_definitions_that_store_what_this_version_does_not_know_are_left_alone(fresh_cluster: ControlPlane) -> None:
    plane = fresh_cluster
    newer = plane.api.get(f"{DEFINITIONS}/{PINS}")
    (version,) = newer["spec"]["versions"]
    newer["spec"]["versions"] = [{**version, "storage": False}, {**version, "name": "v2"}]
    plane.api.put(f"{DEFINITIONS}/{PINS}", newer)
    try:
        outcome = crds_apply(plane.kubeconfig)
        assert outcome.returncode == 1
        assert f"{PINS}: the cluster stores objects as v2" in outcome.stderr
        assert len(plane.api.get(f"{DEFINITIONS}/{PINS}")["spec"]["versions"]) == 2
    finally:
        plane.api.delete(f"{DEFINITIONS}/{PINS}")
        crds_apply(plane.kubeconfig)


def crds_apply(kubeconfig: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "joulie", "crds", "apply", *flags, "--kubeconfig", str(kubeconfig)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_definitions_are_touched_by_an_upgrade_only_on_demand(helm: Helm) -> None:
    assert "joulie-crds" not in named(helm.render(), "Job")
    manifests = helm.render({"crds": {"upgrade": True}})
    job = find(manifests, "Job", "joulie-crds")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-upgrade"
    assert container(job)["args"] == ["crds", "apply"]
    role = find(manifests, "ClusterRole", "joulie-crds")
    assert sorted(role["rules"][0]["resourceNames"]) == [crd["metadata"]["name"] for crd in crds()]


def test_helm_test_looks_as_a_viewer_and_leaves_nothing_behind(helm: Helm) -> None:
    manifests = helm.render({"test": {"wait": "90s"}})
    (only,) = find(manifests, "Pod", "joulie-test")["spec"]["containers"]
    assert only["args"] == ["doctor", "--wait", "90s"]
    assert find(manifests, "ClusterRoleBinding", "joulie-test")["roleRef"]["name"] == "joulie-viewer"
    for kind in ("ServiceAccount", "ClusterRoleBinding"):
        annotations = find(manifests, kind, "joulie-test")["metadata"]["annotations"]
        assert annotations["helm.sh/hook"] == "test"
        assert annotations["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded,hook-failed"


def test_artifact_hub_is_told_of_every_kind() -> None:
    annotations = yaml.safe_load((CHART / "Chart.yaml").read_text())["annotations"]
    told = {one["name"]: one for one in yaml.safe_load(annotations["artifacthub.io/crds"])}
    assert {name: (one["kind"], one["version"]) for name, one in told.items()} == {
        f"{kind.plural}.joulie.io": (kind.kind, VERSION) for kind in KINDS
    }
    assert all(one["displayName"] and one["description"] for one in told.values())


def test_each_step_to_production_has_values_that_do_what_it_says(helm: Helm) -> None:
    dry, rack, everything, steer = sorted((DEPLOY / "values").glob("*.yaml"))
    assert settings(helm, dry)["SIMULATE_ONLY"] == "true"
    one_rack = settings(helm, dry, rack)
    assert (one_rack["SIMULATE_ONLY"], one_rack["POOL_NODE_SELECTOR"]) == (
        "false",
        "joulie.io/managed=true,joulie.io/rack=r1",
    )
    assert settings(helm, dry, everything)["POOL_NODE_SELECTOR"] == "joulie.io/managed=true"
    assert "joulie-scheduler" in named(rendered(helm, dry, everything, steer), "Deployment")


def test_the_pages_values_of_a_step_are_those_of_its_file() -> None:
    page = (DEPLOY.parent / "docs/how-to/production.md").read_text()
    for title, file in (("values.yaml", "2-dry-run.yaml"), ("one-rack.yaml", "3-one-rack.yaml")):
        shown = page.split(f'```yaml title="{title}"\n')[1].split("```")[0]
        assert yaml.safe_load(shown) == yaml.safe_load((DEPLOY / "values" / file).read_text()), title


def test_kustomize_makes_of_the_base_what_helm_makes_of_the_chart(helm_binary: Path, helm: Helm, kubectl: Path) -> None:
    folder = DEPLOY / "kustomize"
    command = [str(kubectl), "kustomize", "--enable-helm", f"--helm-command={helm_binary}", str(folder)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    made = {identity(one): one for one in yaml.safe_load_all(outcome.stdout)}
    flags = ["--include-crds", "--no-hooks", f"--values={folder / 'values.yaml'}", f"--api-versions={POLICY_API}"]
    by_helm = {identity(one): one for one in yaml.safe_load_all(helm.template({}, *flags)) if one}
    assert made == by_helm


def identity(manifest: dict[str, Any]) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


def rendered(helm: Helm, *files: Path) -> list[dict[str, Any]]:
    return helm.render({}, *(f"--values={file}" for file in files))


def settings(helm: Helm, *files: Path) -> dict[str, str]:
    agent = find(rendered(helm, *files), "DaemonSet", "joulie-agent")
    return {one["name"]: one["value"] for one in container(agent)["env"] if "value" in one}
