"""Archives without chance in them: the same files give the same bytes, on any machine."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import json


def tar_bytes(files: Mapping[str, bytes], epoch_s: int, executable: Iterable[str] = ()) -> bytes:
    """A tar of these files, owned by root and of this age."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(content), epoch_s
            member.mode = 0o755 if name in executable else 0o644
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def tar_folder(folder: Path, target: Path, epoch_s: int) -> None:
    """All that is below a folder, links and modes included, as root's."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = epoch_s
        return member

    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(folder.rglob("*")):
            archive.add(path, path.relative_to(folder).as_posix(), recursive=False, filter=plain)


def gzipped(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def json_bytes(document: Any) -> bytes:
    return json.format(json.encode(document, order="deterministic"), indent=2) + b"\n"
