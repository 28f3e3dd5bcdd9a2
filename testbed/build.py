"""The binaries of the control plane: built once for each version, then kept in the user's cache.

`python -m testbed.build [name …]` builds all or some ahead of time: the minutes are better not spent inside a test.
"""

from __future__ import annotations

import json
import platform
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from testbed.cache import appearing, cache_folder, locked
from testbed.golang import Report, go_tool, run_go
from testbed.unavailable import ControlPlaneUnavailable

KUBERNETES_VERSION = "v1.36.3"
ETCD_VERSION = "v3.6.16"
HELM_VERSION = "v3.19.4"
KWOK_VERSION = "v0.8.0"
HELM_KNOWS_MINOR = 34  # the Kubernetes that it takes for granted where there is no cluster, as in its releases


class Source(NamedTuple):
    """The Go module and the main package that a binary is made from."""

    module: str
    version: str
    package: str
    beside: str = ""  # another module with its version, that the package is in


SOURCES = {
    "etcd": Source("go.etcd.io/etcd/server/v3", ETCD_VERSION, "go.etcd.io/etcd/server/v3"),
    **{
        name: Source("k8s.io/kubernetes", KUBERNETES_VERSION, f"k8s.io/kubernetes/cmd/{name}")
        for name in (
            *("kube-apiserver", "kube-scheduler", "kubectl"),
            *("kubelet", "kube-proxy", "kube-controller-manager"),
        )
    },
    # With the libraries of the same Kubernetes, most of which are compiled by then: a third of the time.
    "kwok": Source(
        *("k8s.io/kubernetes", KUBERNETES_VERSION, "sigs.k8s.io/kwok/cmd/kwok"), f"sigs.k8s.io/kwok {KWOK_VERSION}"
    ),
    "helm": Source("helm.sh/helm/v3", HELM_VERSION, "helm.sh/helm/v3/cmd/helm"),
}
# What a running control plane needs; kubectl and Helm, two minutes each, are built when they are asked for.
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-scheduler")
# What a node needs besides, where a machine can run one.
NODE = ("kubelet", "kube-proxy", "kube-controller-manager")


def say(line: str) -> None:
    """The default report: one line on standard error."""
    sys.stderr.write(f"control plane: {line}\n")
    sys.stderr.flush()


def binary(name: str, report: Report = say) -> Path:
    """The path of one binary, built first if need be; ControlPlaneUnavailable where that fails."""
    return binaries([name], report)[name]


def binaries(names: Sequence[str] = CONTROL_PLANE, report: Report = say) -> dict[str, Path]:
    """The same for several. Milliseconds when they are there; processes that come meanwhile wait for the builder."""
    paths = {name: _folder_of(name) / name for name in names}
    if _missing(paths):
        try:
            with locked(binary_folder(), lambda: report("another process is building; waiting for it")):
                _build(_missing(paths), report)
        except OSError as error:
            raise ControlPlaneUnavailable(f"the cache cannot be used: {error}") from error
    return paths


def binary_folder() -> Path:
    """One folder for each set of versions and platform, so that an upgrade never meets an old binary."""
    return cache_folder() / f"kubernetes-{KUBERNETES_VERSION}_etcd-{ETCD_VERSION}_{_machine()}"


def _folder_of(name: str) -> Path:
    """Helm and KWOK have folders of their own: a newer one is no reason to build Kubernetes again."""
    own = {"helm": HELM_VERSION, "kwok": KWOK_VERSION}
    return cache_folder() / f"{name}-{own[name]}_{_machine()}" if name in own else binary_folder()


def _machine() -> str:
    return f"{platform.system()}-{platform.machine()}".lower()


def _missing(paths: dict[str, Path]) -> dict[str, Path]:
    return {name: path for name, path in paths.items() if not path.is_file()}


def _build(targets: dict[str, Path], report: Report) -> None:
    if not targets:
        return  # another process built them while we waited
    started_s = time.monotonic()
    report(f"building {', '.join(targets)} from source: minutes the first time, kept in {cache_folder()}")
    tool = go_tool(cache_folder(), report)
    for number, (name, path) in enumerate(targets.items(), start=1):
        source = SOURCES[name]
        begun_s = time.monotonic()
        what = f"[{number}/{len(targets)}] {name} {source.version}"
        report(f"{what} …")
        path.parent.mkdir(parents=True, exist_ok=True)
        with appearing(path) as unfinished:
            _build_one(tool, source, unfinished, lambda: report(f"{what} … {_since(begun_s)}"))  # noqa: B023
        report(f"{what} done in {_since(begun_s)}")
    report(f"built in {_since(started_s)}")


def _build_one(tool: Path, source: Source, target: Path, still_running: Callable[[], None]) -> None:
    folder = target.parent
    (folder / "go.mod").write_text(_wrapper_module(tool, source, folder))
    flags = " ".join(["-s", "-w", *_version_flags(source)])
    arguments = ["build", "-mod=mod", "-ldflags", flags, "-o", str(target), source.package]
    run_go(tool, *arguments, folder=folder, still_running=still_running)


def _wrapper_module(tool: Path, source: Source, folder: Path) -> str:
    """A module that requires the real one.

    Kubernetes' own go.mod takes its staging modules (`k8s.io/api v0.0.0`) from folders of its repository. Outside of it
    each has to be replaced by the version published with the same release.
    """
    downloaded = json.loads(
        run_go(tool, "mod", "download", "-json", f"{source.module}@{source.version}", folder=folder)
    )
    original = Path(downloaded["GoMod"]).read_text()
    go_line = re.search(r"(?m)^go .+$", original)
    published = re.sub(r"^v\d+", "v0", source.version)
    staging = dict.fromkeys(re.findall(r"(?m)^\s*(k8s\.io/\S+) v0\.0\.0$", original))
    lines = ["module joulie.io/testbed", go_line[0] if go_line else "", f"require {source.module} {source.version}"]
    lines += [f"require {source.beside}"] if source.beside else []
    lines += [f"replace {module} => {module} {published}" for module in staging]
    return "\n".join(lines) + "\n"


def _version_flags(source: Source) -> list[str]:
    """Without these Kubernetes calls itself v0.0.0-master, which kubectl and Helm refuse to parse."""
    if source.package.endswith("/helm"):
        known = {"k8sVersionMajor": "1", "k8sVersionMinor": f"{HELM_KNOWS_MINOR}"}
        packages = ("pkg/chartutil", "pkg/lint/rules")
        flags = [
            f"-X {source.module}/{package}.{name}={value}" for package in packages for name, value in known.items()
        ]
        return [f"-X {source.module}/internal/version.version={source.version}", *flags]
    if source.module != "k8s.io/kubernetes":
        return []
    major, minor, _ = source.version.removeprefix("v").split(".")
    values = {"gitVersion": source.version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return [f"-X {package}.{name}={value}" for package in packages for name, value in values.items()]


def _since(begun_s: float) -> str:
    seconds = time.monotonic() - begun_s
    return f"{int(seconds // 60)}:{int(seconds % 60):02d} min"


def main(names: Sequence[str]) -> int:
    """Build what is named, or all that needs nothing but a user's rights."""
    unknown = set(names) - set(SOURCES)
    if unknown:
        say(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(SOURCES)}")
        return 2
    try:
        binaries(names or [name for name in SOURCES if name not in (*NODE, "kwok")])
    except ControlPlaneUnavailable as unavailable:
        say(f"UNAVAILABLE: {unavailable.reason}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
