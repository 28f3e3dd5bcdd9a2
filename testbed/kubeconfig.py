"""A kubeconfig with one cluster, one user and one context, complete in itself."""

from __future__ import annotations

import base64
import json
from pathlib import Path


def write_kubeconfig(file: Path, url: str, ca_file: Path, token: str, name: str = "joulie-testbed") -> Path:
    """Write it as JSON, which every reader of YAML takes."""
    authority = base64.b64encode(ca_file.read_bytes()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority-data": authority}}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    file.touch(mode=0o600)
    file.write_text(json.dumps(config, indent=2) + "\n")
    return file
