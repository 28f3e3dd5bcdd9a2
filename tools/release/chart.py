"""The chart as Helm takes it from a file, and as an OCI artefact for registries."""

from __future__ import annotations

import fnmatch
import tempfile
from pathlib import Path
from typing import Any

import yaml

from tools.release.archives import gzipped, json_bytes, tar_bytes, tar_folder
from tools.release.image import ROOT, BuildError
from tools.release.oci import Part, write_layout

CHART = ROOT / "deploy/chart/joulie"
CONFIG = "application/vnd.cncf.helm.config.v1+json"
CONTENT = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
REPOSITORY = "  repository: joulie\n"


def package_chart(folder: Path, version: str, registry: str, epoch_s: int) -> tuple[Path, Path]:
    """`joulie-VERSION.tgz`, which takes its image from the registry, and the same as an OCI archive."""
    chart: dict[str, Any] = yaml.safe_load((CHART / "Chart.yaml").read_text())
    if {str(chart["version"]), str(chart["appVersion"])} != {version}:
        raise BuildError(f"Chart.yaml says {chart['version']} and {chart['appVersion']}, joulie is {version}")
    files = {f"joulie/{path.relative_to(CHART).as_posix()}": path.read_bytes() for path in _files()}
    values = files["joulie/values.yaml"].decode()
    if values.count(REPOSITORY) != 1:
        raise BuildError(f"values.yaml does not have the line {REPOSITORY.strip()}")
    files["joulie/values.yaml"] = values.replace(REPOSITORY, f"  repository: {registry}/joulie\n").encode()
    described = files["joulie/Chart.yaml"].decode()
    named = described.replace(f"image: joulie:{version}", f"image: {registry}/joulie:{version}")
    files["joulie/Chart.yaml"] = named.encode()
    packed = folder / f"joulie-{version}.tgz"
    packed.write_bytes(gzipped(tar_bytes(files, epoch_s)))
    archive = folder / f"joulie-{version}-chart.oci.tar"
    with tempfile.TemporaryDirectory() as name:
        config = Path(name, "config.json")
        config.write_bytes(json_bytes(chart))
        annotations = {
            "org.opencontainers.image.title": str(chart["name"]),
            "org.opencontainers.image.version": version,
            "org.opencontainers.image.description": str(chart["description"]),
        }
        write_layout(Path(name, "layout"), Part(CONFIG, config), [Part(CONTENT, packed)], version, annotations)
        tar_folder(Path(name, "layout"), archive, epoch_s)
    return packed, archive


def _files() -> list[Path]:
    ignored = [line for line in (CHART / ".helmignore").read_text().split() if not line.startswith("#")]
    return [
        path
        for path in sorted(CHART.rglob("*"))
        if path.is_file()
        and not any(fnmatch.fnmatch(part, rule) for part in path.relative_to(CHART).parts for rule in ignored)
    ]
