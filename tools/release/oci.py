"""OCI image layouts: how registries keep images, charts and anything else, as files in a folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import json

from tools.release.archives import json_bytes, sha256

MANIFEST = "application/vnd.oci.image.manifest.v1+json"


class Part(NamedTuple):
    """A blob and what it is."""

    media_type: str
    file: Path


def write_layout(folder: Path, config: Part, layers: list[Part], tag: str, annotations: dict[str, str]) -> str:
    """One artefact in a layout of its own; its digest."""
    (folder / "blobs/sha256").mkdir(parents=True)
    (folder / "oci-layout").write_bytes(json_bytes({"imageLayoutVersion": "1.0.0"}))
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": _blob(folder, config),
        "layers": [_blob(folder, layer) for layer in layers],
        "annotations": annotations,
    }
    file = folder / "manifest.json"
    file.write_bytes(json_bytes(manifest))
    entry = _blob(folder, Part(MANIFEST, file))
    file.unlink()
    entry["annotations"] = {"org.opencontainers.image.ref.name": tag}
    (folder / "index.json").write_bytes(json_bytes({"schemaVersion": 2, "manifests": [entry]}))
    return str(entry["digest"])


def only_manifest(layout: Path) -> tuple[str, dict[str, Any]]:
    """The digest and the manifest of the one artefact in a layout."""
    (entry,) = json.decode((layout / "index.json").read_bytes())["manifests"]
    return entry["digest"], json.decode(blob(layout, entry["digest"]).read_bytes())


def blob(layout: Path, digest: str) -> Path:
    return layout / "blobs" / digest.replace(":", "/")


def _blob(folder: Path, part: Part) -> dict[str, Any]:
    digest = sha256(part.file)
    shutil.copy(part.file, folder / "blobs/sha256" / digest)
    return {"mediaType": part.media_type, "digest": f"sha256:{digest}", "size": part.file.stat().st_size}
