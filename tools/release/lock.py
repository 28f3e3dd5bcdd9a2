"""What the lock says for one Python on one platform: the packages that Joulie needs there, and no others."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from typing import Any, NamedTuple

from packaging.markers import Marker

from tools.release.image import ROOT


class Platform(NamedTuple):
    """A system and processor, by the name that Go and krew give it, and the tags of wheels that run there."""

    name: str
    system: str
    machine: str
    tags: tuple[str, ...]


class Locked(NamedTuple):
    """One package of the lock."""

    name: str
    version: str
    block: str  # as pip reads it, hashes included, without a marker
    brought_by: tuple[str, ...]


def _linux(machine: str) -> tuple[str, ...]:
    return tuple(f"manylinux{tag}_{machine}" for tag in ("_2_28", "_2_27", "_2_26", "_2_24", "_2_17", "2014"))


def _mac(machine: str, oldest: int) -> tuple[str, ...]:
    return tuple(f"macosx_{major}_0_{machine}" for major in range(14, oldest - 1, -1))


PLATFORMS = {
    platform.name: platform
    for platform in (
        Platform("linux-amd64", "linux", "x86_64", _linux("x86_64")),
        Platform("linux-arm64", "linux", "aarch64", _linux("aarch64")),
        Platform("darwin-arm64", "darwin", "arm64", _mac("arm64", 11)),
    )
}


def locked(asked: str, python: str, platform: Platform) -> list[Locked]:
    """All that `joulie` or `joulie[extra]` needs, by name."""
    module = _locked_py()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text: str = module.subset((ROOT / "requirements.lock").read_text(), module.roots_of(asked, project))
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": platform.system,
        "platform_system": platform.system.capitalize(),
        "platform_machine": platform.machine,
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
        "extra": "",
    }
    found = []
    for block in re.split(r"(?m)^(?=[A-Za-z0-9])", text)[1:]:
        first, rest = block.split("\n", 1)
        pinned, _, marker = first.rstrip(" \\").partition(" ; ")
        if marker and not Marker(marker).evaluate(environment):
            continue
        name, version = pinned.split("==")
        parents = tuple(sorted({module.normal(line) for line in module.via(block)}))
        found.append(Locked(name, version, f"{pinned} \\\n{rest}", parents))
    return found


def _locked_py() -> Any:
    """The program of the Dockerfile that picks from the lock; it stands by itself, so it is in no package."""
    spec = importlib.util.spec_from_file_location("locked", ROOT / "deploy/image/locked.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
