"""Helm itself, on the chart of this repository."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]

CHART = Path(__file__).parents[2] / "deploy" / "chart" / "joulie"
NAMESPACE = "joulie-system"
RELEASE = "joulie"
POLICY_API = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
SCHEDULER_IMAGE = "kube-scheduler:v1.36.3"
SIMULATED: Manifest = {"agent": {"mode": "pool"}, "simulator": {"enabled": True}}


class Refused(Exception):  # noqa: N818 - Helm refused, this says why
    """Helm ended with an error; its words."""


class Helm:
    """One Helm with folders of its own, so that no user's repositories and plug-ins take part."""

    def __init__(self, binary: Path, folder: Path, kubeconfig: Path | None = None) -> None:
        self._binary = binary
        self._folder = folder
        homes = {f"HELM_{name}_HOME": str(folder / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
        self._env = {"PATH": os.environ["PATH"], "HOME": str(folder), **homes}
        self._env["KUBECONFIG"] = str(kubeconfig or folder / "none")

    def run(self, *arguments: str) -> str:
        """What it printed; Refused where it fails."""
        outcome = subprocess.run(self.command(*arguments), capture_output=True, text=True, env=self._env, check=False)
        if outcome.returncode != 0:
            raise Refused(outcome.stderr.strip())
        return outcome.stdout

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """The same, without waiting."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            self.command(*arguments), stdout=pipe, stderr=subprocess.STDOUT, text=True, env=self._env
        )

    def command(self, *arguments: str) -> list[str]:
        return [str(self._binary), *arguments]

    def render(
        self, values: Mapping[str, Any] | None = None, *flags: str, namespace: str = NAMESPACE, name: str = RELEASE
    ) -> list[Manifest]:
        """Every object that these values make, hooks among them, on a cluster that serves everything."""
        text = self.template(values, f"--api-versions={POLICY_API}", *flags, namespace=namespace, name=name)
        return [manifest for manifest in yaml.safe_load_all(text) if manifest]

    def template(
        self,
        values: Mapping[str, Any] | None = None,
        *flags: str,
        namespace: str = NAMESPACE,
        name: str = RELEASE,
    ) -> str:
        return self.run("template", name, str(CHART), "--namespace", namespace, *self.given(values or {}), *flags)

    def given(self, values: Mapping[str, Any]) -> Sequence[str]:
        """The flags that hand over values, as a file."""
        file = self._folder / "values.json"
        file.write_text(json.dumps(values))
        return ["--values", str(file)]


def find(manifests: Sequence[Manifest], kind: str, name: str) -> Manifest:
    (found,) = (one for one in manifests if one["kind"] == kind and one["metadata"]["name"] == name)
    return found


def named(manifests: Sequence[Manifest], kind: str) -> set[str]:
    return {one["metadata"]["name"] for one in manifests if one["kind"] == kind}


def pod_template(manifest: Manifest) -> Manifest:
    template: Manifest = manifest["spec"]["template"]
    return template


def container(manifest: Manifest) -> Manifest:
    (only,) = pod_template(manifest)["spec"]["containers"]
    found: Manifest = only
    return found


def environment(manifest: Manifest) -> dict[str, str]:
    """The variables that are written out; those taken from the pod are not among them."""
    return {one["name"]: one["value"] for one in container(manifest)["env"] if "value" in one}


# Values that together reach every branch of the templates.
MATRIX: dict[str, Manifest] = {
    "defaults": {},
    "dry run": {"dryRun": True},
    "everything for a stock cluster": {
        "operator": {"replicas": 2, "settings": {"POLICY_TYPE": "queue_aware_v1", "POWER_BUDGET_WATTS": 66000}},
        "scheduler": {"enabled": True, "image": SCHEDULER_IMAGE},
        "monitoring": {"enabled": True, "labels": {"release": "prometheus"}},
        "imagePullSecrets": [{"name": "pull"}],
        "image": {"repository": "example/joulie", "digest": "sha256:" + "0" * 64},
    },
    "NVIDIA": {"agent": {"nvidia": {"enabled": True}}},
    "NVIDIA and HSMP": {"agent": {"nvidia": {"enabled": True, "runtimeClassName": ""}, "hsmp": {"enabled": True}}},
    "HSMP": {"agent": {"hsmp": {"enabled": True}, "daemonset": {"nodeSelector": {"vendor": "amd"}}}},
    "simulated": SIMULATED,
    "simulated without storage": {
        "agent": {"mode": "pool", "pool": {"replicas": 3, "storage": {"enabled": False}}},
        "simulator": {"enabled": True, "settings": {"SIM_SPEED": 20}},
    },
    "TLS": {
        "extender": {"tls": {"secretName": "joulie-extender-tls"}},
        "scheduler": {"enabled": True, "image": SCHEDULER_IMAGE, "replicas": 1},
    },
    "shared settings": {
        "settings": {"POWER_PROFILE_LABEL": "example.com/profile", "RESERVED_LABEL_KEY": "example.com/hands-off"},
        "hardwareCatalogue": '[[gpu]]\nname = "X1"\nvendor = "nvidia"\nmax_w = 400\n',
        "managedNodes": "joulie.io/rack in (r1,r2)",
    },
    "agents alone": {
        "operator": {"enabled": False},
        "extender": {"enabled": False},
        "cleanup": {"enabled": False},
        "networkPolicy": {"enabled": False},
        "performanceAffinity": {"enabled": False},
    },
    "guarded metrics": {
        "networkPolicy": {"metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]}
    },
}
