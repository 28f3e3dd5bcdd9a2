"""Small images for pods of the testbed itself: a static busybox, or one program, packed as `docker save` would."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import re
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

PAUSE = "joulie.test/busybox:1"  # what keeps a pod's namespaces; its command sleeps
BUSYBOX = PAUSE
# Not wget: a static program of Debian's cannot look up a name, and crashes. nslookup and nc do it in two steps.
PROGRAMS = ("awk", "cat", "httpd", "id", "kill", "ls", "nc", "nslookup", "sh", "sleep", "tail", "touch")


def write_busybox_image(busybox: Path, target: Path) -> Path:
    """One program and its links; without a command of its own it sleeps."""
    links = dict.fromkeys((f"bin/{program}" for program in PROGRAMS), "busybox")
    return _write_image(target, BUSYBOX, {"bin/busybox": busybox}, links, ["/bin/sleep", "2000000000"])


def write_program_image(program: Path, tag: str, target: Path) -> Path:
    """One program of this machine, by its name, with the libraries that it is linked to."""
    said = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout  # static: none
    libraries = {path.lstrip("/"): Path(path) for path in re.findall(r"(/\S+) \(0x", said)}
    return _write_image(target, tag, {f"bin/{program.name}": program, **libraries}, {}, [f"/bin/{program.name}"])


def _write_image(
    target: Path, tag: str, files: Mapping[str, Path], links: Mapping[str, str], command: Sequence[str]
) -> Path:
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        parents = {str(parent) for name in files for parent in PurePosixPath(name).parents} - {"."}
        for folder in sorted(parents | {"bin", "tmp", "etc"}):
            _add(tar, f"{folder}/", b"", kind=tarfile.DIRTYPE, mode=0o755)
        for name, file in files.items():
            _add(tar, name, file.read_bytes(), mode=0o755)
        for name, towards in links.items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, towards
            tar.addfile(link)
    content = layer.getvalue()
    digest = hashlib.sha256(content).hexdigest()
    config = {
        "architecture": _architecture(),
        "os": "linux",
        "config": {"Cmd": list(command), "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [tag], "Layers": ["layer.tar"]}]
    with tarfile.open(target, "w") as tar:
        for name, part in (("config.json", config), ("manifest.json", manifest)):
            _add(tar, name, json.dumps(part).encode())
        _add(tar, "layer.tar", content)
    return target


def _add(tar: tarfile.TarFile, name: str, content: bytes, kind: bytes = tarfile.REGTYPE, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.size = kind, mode, len(content)
    tar.addfile(entry, io.BytesIO(content))


def _architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
