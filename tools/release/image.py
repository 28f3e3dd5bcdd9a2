"""The image, built by buildah from the Dockerfile: no daemon, and the same input gives the same digest."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.release.archives import tar_folder
from tools.release.oci import only_manifest

ROOT = Path(__file__).parents[2]
NAME = "localhost/joulie"
POLICY = '{"default": [{"type": "insecureAcceptAnything"}]}'  # what is pulled is pinned by digest
PIP_OPTIONS = ("index-url", "extra-index-url", "trusted-host")


class BuildError(Exception):
    """Something of a release cannot be made; the text says why."""


@dataclass(frozen=True, slots=True)
class Builder:
    """buildah with a store of its own, which may be removed afterwards."""

    store: Path
    command: Sequence[str] = ("buildah",)

    def run(self, *arguments: str) -> str:
        """What it prints; BuildError with the end of its complaint."""
        for name in ("root", "runroot"):
            (self.store / name).mkdir(parents=True, exist_ok=True)
        (self.store / "policy.json").write_text(POLICY)
        (self.store / "registries.conf").write_text('unqualified-search-registries = ["docker.io"]\n')
        places = [
            "--root",
            str(self.store / "root"),
            "--runroot",
            str(self.store / "runroot"),
            "--storage-driver",
            "vfs",
        ]
        environment = os.environ | {"CONTAINERS_REGISTRIES_CONF": str(self.store / "registries.conf")}
        command = [*self.command, *places, *arguments]
        try:
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        except OSError as error:
            raise BuildError(f"{command[0]}: {error.strerror}") from error
        if done.returncode != 0:
            raise BuildError(f"buildah {arguments[0]}: {done.stderr.strip()[-2000:]}")
        return done.stdout

    @property
    def policy(self) -> str:
        return f"--signature-policy={self.store / 'policy.json'}"


def build_image(
    builder: Builder, target: Path, tag: str, *, epoch_s: int, arguments: Mapping[str, str], base: Path | None = None
) -> str:
    """Write the image as an OCI archive; its digest. `base` is an archive to take the base image from."""
    name = f"{NAME}:{tag}"
    pull = "--pull"
    if base is not None:
        builder.run("pull", builder.policy, f"oci-archive:{base}")
        pull = "--pull-never"
    with tempfile.TemporaryDirectory() as folder:
        build = ["bud", builder.policy, "--isolation=chroot", pull, f"--timestamp={epoch_s}", f"--tag={name}"]
        build += [f"--build-arg={key}={value}" for key, value in arguments.items()]
        builder.run(*build, *_index_of_this_machine(Path(folder)), ".")
        layout = Path(folder, "layout")
        builder.run("push", builder.policy, name, f"oci:{layout}:{name}")
        tar_folder(layout, target, epoch_s)
        return only_manifest(layout)[0]


def _index_of_this_machine(folder: Path) -> list[str]:
    """Lets pip in the build talk to the package index that pip here talks to, and keep what it fetches."""
    machine = folder / "machine"
    machine.mkdir()
    lines = ["[global]"]
    authorities = os.environ.get("PIP_CERT") or ssl.get_default_verify_paths().cafile
    if authorities and Path(authorities).is_file():
        (machine / "authorities.pem").write_bytes(Path(authorities).read_bytes())
        lines.append("cert = /run/machine/authorities.pem")
    lines.append("cache-dir = /run/pip-cache")
    values = {option: _pip("config", "get", f"global.{option}") for option in PIP_OPTIONS}
    lines += [f"{option} = {value}" for option, value in values.items() if value]
    (machine / "pip.conf").write_text("\n".join(lines) + "\n")
    volumes = [f"{machine}:/run/machine:ro", f"{machine / 'pip.conf'}:/etc/pip.conf:ro"]
    if cache := _pip("cache", "dir"):
        Path(cache).mkdir(parents=True, exist_ok=True)
        volumes.append(f"{cache}:/run/pip-cache")
    return [f"--volume={volume}" for volume in volumes]


def _pip(*arguments: str) -> str:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
