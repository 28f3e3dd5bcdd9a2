"""The page's own files, read once, with a tag each so that a browser asks but does not fetch twice."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).with_name("static")
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Asset:
    """One file as it is sent."""

    body: bytes
    packed: bytes
    content_type: str
    tag: str


@cache
def assets() -> dict[str, Asset]:
    """By file name. Nothing but what stands here can be asked for, so no path leads outside."""
    return {path.name: _read(path) for path in sorted(FOLDER.iterdir()) if path.suffix in TYPES}


def _read(path: Path) -> Asset:
    body = path.read_bytes()
    tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    return Asset(body, gzip.compress(body, 9, mtime=0), TYPES[path.suffix], tag)
