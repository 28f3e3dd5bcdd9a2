"""Exec plug-ins of a kubeconfig: programs of a cloud or an identity provider that print a credential.

Follows client.authentication.k8s.io v1 and v1beta1, as kubectl does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from joulie.errors import InputError
from joulie.model.rfc3339 import readable_time_s

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
TIMEOUT_S = 60.0  # when not interactive; a login in a browser may take any time


class ExecCredential(NamedTuple):
    """The credential that a plug-in printed."""

    token: str
    certificate: tuple[str, str] | None  # certificate and key, PEM
    expires_s: float | None  # wall clock


def run_plugin(plugin: Mapping[str, Any], cluster: Mapping[str, Any], folder: Path) -> ExecCredential:
    """Runs the plug-in; InputError with its error output if it fails."""
    version, command = plugin.get("apiVersion"), plugin.get("command")
    if version not in API_VERSIONS:
        raise InputError(f"exec.apiVersion {version}: supported are {' and '.join(API_VERSIONS)}")
    if not isinstance(command, str) or not command:
        raise InputError("exec has no command")
    interactive = _interactive(plugin)
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": interactive}}
    if plugin.get("provideClusterInfo"):
        info["spec"] = {"interactive": interactive, "cluster": dict(cluster)}
    environment = os.environ | {str(entry["name"]): str(entry["value"]) for entry in plugin.get("env") or ()}
    environment["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(info).decode()
    program = str(folder / command) if "/" in command else command
    output = _output([program, *map(str, plugin.get("args") or ())], environment, interactive, plugin)
    return _credential(output, command, str(version))


def _interactive(plugin: Mapping[str, Any]) -> bool:
    """Whether the plug-in may prompt; one that must prompt is not started without a terminal."""
    mode = plugin.get("interactiveMode") or "IfAvailable"
    terminal = sys.stdin is not None and sys.stdin.isatty()
    if mode == "Always" and not terminal:
        raise InputError(f"the exec plug-in {plugin.get('command')} needs a terminal")
    return terminal and mode != "Never"


def _output(command: list[str], environment: dict[str, str], interactive: bool, plugin: Mapping[str, Any]) -> bytes:
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if interactive else subprocess.PIPE,
            timeout=None if interactive else TIMEOUT_S,
            check=False,
        )
    except OSError as error:
        hint = f"; {plugin['installHint']}" if plugin.get("installHint") else ""
        raise InputError(f"the exec plug-in {command[0]} cannot be run ({error.strerror}){hint}") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"the exec plug-in {command[0]} did not finish within {TIMEOUT_S:.0f} s") from None
    if done.returncode != 0:
        said = (done.stderr or b"").decode(errors="replace")
        raise InputError(f"the exec plug-in {command[0]} failed with exit code {done.returncode}: {said}")
    return done.stdout


def _credential(output: bytes, command: str, version: str) -> ExecCredential:
    try:
        document = msgspec.json.decode(output)
        status = document["status"]
        if document.get("apiVersion") != version:
            raise InputError(f"the exec plug-in {command} answered in {document.get('apiVersion')}, not {version}")
        token = status.get("token") or ""
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        expires_s = readable_time_s(status.get("expirationTimestamp"))
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        raise InputError(f"the exec plug-in {command} did not print an ExecCredential") from None
    if not token and not (certificate and key):
        raise InputError(f"the exec plug-in {command} returned neither a token nor a certificate with its key")
    return ExecCredential(token, (certificate, key) if certificate and key else None, expires_s)
