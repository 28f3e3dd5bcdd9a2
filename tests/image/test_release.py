"""What `make release` puts into a folder: complete, made the same each time, and working as it lies there."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import json

from joulie import __version__
from tests.chart.charts import CHART, Helm
from tests.image.container import Container
from tests.image.test_build import installed
from tools.release.archives import sha256
from tools.release.image import ROOT
from tools.release.oci import blob, only_manifest

REGISTRY = "registry.example/team"
PREFIX = f"joulie-{__version__}"
EXAMPLE = ROOT / "src/joulie/demo/example_cluster.yaml"


@pytest.fixture(scope="module")
def released_image(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Container:
    (archive,) = release.glob(f"{PREFIX}-image-linux-*.oci.tar")
    return Container(archive, tmp_path_factory.mktemp("released"))


@pytest.fixture(scope="module")
def bill(release: Path) -> dict[str, Any]:
    (file,) = release.glob(f"{PREFIX}-image-linux-*.cdx.json")
    found: dict[str, Any] = json.decode(file.read_bytes())
    return found


def test_every_file_has_its_checksum(release: Path) -> None:
    lines = (release / "SHA256SUMS").read_text().splitlines()
    listed = {name: checksum for checksum, _, name in (line.partition("  ") for line in lines)}
    assert listed == {path.name: sha256(path) for path in release.iterdir() if path.name != "SHA256SUMS"}
    kinds = {name.removeprefix(f"{PREFIX}-image-").split(".", 1)[-1] for name in listed}
    assert {"oci.tar", "cdx.json", "tar.gz", "krew.yaml"} <= kinds
    assert {f"{PREFIX}.tgz", f"{PREFIX}-chart.oci.tar", f"{PREFIX}-py3-none-any.whl"} <= set(listed)


def test_the_same_sources_give_the_same_image(image: Container, released_image: Container) -> None:
    assert released_image.layers == image.layers
    labels, ours = released_image.config.pop("Labels"), image.config["Labels"]
    assert released_image.config == {key: value for key, value in image.config.items() if key != "Labels"}
    assert labels.keys() == ours.keys()
    assert labels["org.opencontainers.image.version"] == __version__
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert labels["org.opencontainers.image.revision"] == head.strip()


def test_the_bill_of_materials_lists_what_the_image_holds(bill: dict[str, Any], released_image: Container) -> None:
    by_kind: dict[str, set[str]] = {}
    for one in bill["components"]:
        kind = one["purl"].removeprefix("pkg:").split("/")[0]
        by_kind.setdefault(kind, set()).add(one["name"])
    assert by_kind["pypi"] == {name.replace("_", "-") for name in installed(released_image)}
    records = released_image.root / "var/lib/dpkg/status.d"
    assert by_kind["deb"] == {path.name for path in records.iterdir()}
    assert by_kind["generic"] == {"python"}


def test_the_bill_of_materials_is_sound(bill: dict[str, Any], released_image: Container) -> None:
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    image = bill["metadata"]["component"]
    assert image["purl"] == f"pkg:oci/joulie@{released_image.digest.replace(':', '%3A')}"
    refs = [image["bom-ref"], *(one["bom-ref"] for one in bill["components"])]
    assert len(refs) == len(set(refs))
    needs = {one["ref"]: set(one["dependsOn"]) for one in bill["dependencies"]}
    assert needs.keys() | set().union(*needs.values()) <= set(refs)
    (ourselves,) = (ref for ref in needs if ref.startswith("pkg:pypi/joulie@"))
    assert any(ref.startswith("pkg:pypi/aiohttp@") for ref in needs[ourselves])


def test_helm_takes_the_packaged_chart_with_the_released_image(release: Path, helm: Helm) -> None:
    packed = release / f"{PREFIX}.tgz"
    helm.run("lint", "--strict", str(packed))
    ours = helm.run("template", "joulie", str(CHART), "--include-crds")
    released = helm.run("template", "joulie", str(packed), "--include-crds")
    assert released == ours.replace(
        f"image: joulie:{__version__}", f"image: registry.example/team/joulie:{__version__}"
    )
    assert released != ours


def test_the_chart_as_an_artefact_holds_the_packaged_chart(release: Path, tmp_path: Path) -> None:
    with tarfile.open(release / f"{PREFIX}-chart.oci.tar") as archive:
        archive.extractall(tmp_path, filter="data")
    _, manifest = only_manifest(tmp_path)
    (layer,) = manifest["layers"]
    assert layer["mediaType"] == "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
    assert layer["digest"] == f"sha256:{sha256(release / f'{PREFIX}.tgz')}"
    assert manifest["config"]["mediaType"] == "application/vnd.cncf.helm.config.v1+json"
    assert json.decode(blob(tmp_path, manifest["config"]["digest"]).read_bytes())["version"] == __version__


def test_the_plug_in_is_one_file_that_runs_without_a_virtual_environment(release: Path, tmp_path: Path) -> None:
    (packed,) = release.glob("kubectl-joulie-linux-*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path, filter="data")
    assert {path.name for path in tmp_path.iterdir()} == {"kubectl-joulie", "LICENSE"}
    home = tmp_path / "home"
    environment = {"PATH": f"{sys.base_prefix}/bin:/usr/bin:/bin", "HOME": str(home)}

    def run(*arguments: str) -> str:
        command = [str(tmp_path / "kubectl-joulie"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/", check=True).stdout

    assert run("--version") == f"joulie {__version__}\n"
    (unpacked,) = (home / ".cache/joulie").iterdir()
    first = unpacked.stat().st_ino
    assert "caps allow" in run("plan", "-f", str(EXAMPLE))
    assert [path.stat().st_ino for path in (home / ".cache/joulie").iterdir()] == [first]


def test_the_plug_in_says_for_which_python_it_was_made(release: Path, tmp_path: Path) -> None:
    (packed,) = release.glob("kubectl-joulie-linux-*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path, filter="data")
    pretend = "import runpy, sys; sys.version_info = (3, 99); runpy.run_path(sys.argv[1], run_name='__main__')"
    command = [sys.executable, "-c", pretend, str(tmp_path / "kubectl-joulie")]
    outcome = subprocess.run(command, capture_output=True, text=True, env={"HOME": str(tmp_path)}, check=False)
    assert outcome.returncode == 1
    assert f"made for Python 3.{sys.version_info[1]} on linux-" in outcome.stderr
    assert "and this is 3.99" in outcome.stderr


def test_krew_finds_the_plug_in_by_its_checksum(release: Path) -> None:
    manifest = yaml.safe_load((release / "joulie.krew.yaml").read_text())
    assert (manifest["kind"], manifest["metadata"]["name"]) == ("Plugin", "joulie")
    assert manifest["spec"]["version"] == f"v{__version__}"
    assert len(manifest["spec"]["shortDescription"]) < 50
    for platform in manifest["spec"]["platforms"]:
        url, _, name = platform["uri"].rpartition("/")
        assert url == "https://files.example/joulie"
        assert platform["sha256"] == sha256(release / name)
        with tarfile.open(release / name) as archive:
            assert {entry["from"] for entry in platform["files"]} == set(archive.getnames())
            assert archive.getmember(platform["bin"]).mode & 0o111
