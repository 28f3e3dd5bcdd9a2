"""The bill of materials of an image, as CycloneDX: Python packages by the lock, and what came from the base image."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tools.release.lock import PLATFORMS, locked

NAMESPACE = uuid.UUID("6ba7b812-9dad-11d1-80b4-00c04fd430c8")  # of ISO object identifiers, as good as any
EXTRAS = "joulie[nvidia,podresources]"  # what the Dockerfile installs


def sbom(root: Path, version: str, digest: str, platform: str, epoch_s: int) -> dict[str, Any]:
    """Of an image that is unpacked below `root`."""
    full_python = _python_version(root)
    python = _component("python", full_python, f"pkg:generic/python@{full_python}")
    ourselves = _component("joulie", version, f"pkg:pypi/joulie@{version}")
    packages = locked(EXTRAS, ".".join(full_python.split(".")[:2]), PLATFORMS[platform])
    refs = {"joulie": ourselves["purl"]} | {one.name: f"pkg:pypi/{one.name}@{one.version}" for one in packages}
    components = [ourselves, python, *(_component(one.name, one.version, refs[one.name]) for one in packages)]
    components += _debian(root)
    needs: dict[str, list[str]] = {ref: [] for ref in refs.values()}
    for one in packages:
        for parent in one.brought_by:
            if parent in refs:
                needs[refs[parent]].append(refs[one.name])
    image = _component("joulie", version, f"pkg:oci/joulie@{quote(digest, safe='')}", "container")
    needs[image["bom-ref"]] = [one["bom-ref"] for one in components]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, digest)}",
        "version": 1,
        "metadata": {"timestamp": datetime.fromtimestamp(epoch_s, UTC).isoformat(), "component": image},
        "components": components,
        "dependencies": [{"ref": ref, "dependsOn": sorted(others)} for ref, others in sorted(needs.items())],
    }


def _component(name: str, version: str, purl: str, kind: str = "library") -> dict[str, Any]:
    return {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl}


def _python_version(root: Path) -> str:
    lines = (root / "opt/joulie/pyvenv.cfg").read_text().splitlines()
    return next(line.partition("=")[2].strip() for line in lines if line.startswith("version ="))


def _debian(root: Path) -> list[dict[str, Any]]:
    release = dict(line.split("=", 1) for line in (root / "etc/os-release").read_text().splitlines() if "=" in line)
    distribution = f"{release['ID']}-{release.get('VERSION_ID', '').strip(chr(34))}"
    found = []
    for record in sorted((root / "var/lib/dpkg/status.d").iterdir()):
        fields = dict(
            line.split(": ", 1) for line in record.read_text().splitlines() if not line.startswith(" ") and ": " in line
        )
        version = fields["Version"]
        place = f"arch={fields['Architecture']}&distro={distribution}"
        purl = f"pkg:deb/debian/{quote(record.name, safe='')}@{quote(version, safe='')}?{place}"
        found.append(_component(record.name, version, purl))
    return found
