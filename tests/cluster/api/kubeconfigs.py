"""Kubeconfig files and exec plug-ins that tests write."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from typing import Any

from msgspec import json

from joulie.cluster.api.credentials import Credentials

SERVER = "https://one:6443"


def header(credentials: Credentials) -> str | None:
    return asyncio.run(credentials.authorization())


def write(path: Path, user: dict[str, Any], *, name: str = "one", server: str = SERVER, **more: Any) -> Path:
    config = {
        "clusters": [{"name": name, "cluster": {"server": server} | more}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"of-{name}"}}],
        "current-context": name,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(json.encode(config))
    return path


def plugin(tmp_path: Path, body: str) -> dict[str, Any]:
    script = tmp_path / "plugin"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script)}}


def credential(**status: str) -> str:
    body = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    return f"echo '{json.encode(body).decode()}'"
