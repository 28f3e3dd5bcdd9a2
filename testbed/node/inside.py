"""The program within the namespaces: makes the place, starts everything, and then does what the owner writes to it.

One line in, one line out, both JSON. The first line out tells how to reach the API server from outside.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.api import ApiError
from testbed.control_plane import ControlPlane, User
from testbed.node import components
from testbed.node.components import CONTAINERD_SOCKET, NODE_NAME, SERVICE_IP
from testbed.node.images import write_busybox_image
from testbed.node.mounts import make_private_places, replace_sys
from testbed.node.network import NODE_IP, make_network, relay, serve_names
from testbed.node.rapl import sys_with_power_caps
from testbed.node.volumes import volumes
from testbed.processes import Child, Processes

READY_S = 120.0
APISERVER_FLAGS = (
    "--bind-address=0.0.0.0",
    f"--advertise-address={NODE_IP}",
    "--endpoint-reconciler-type=lease",
    "--authorization-mode=Node,RBAC",
    "--disable-admission-plugins=",
    "--enable-admission-plugins=NodeRestriction",
    "--kubelet-preferred-address-types=InternalIP",
)


class Inside:
    """The running node, as seen from within."""

    def __init__(self, folder: Path, packages: Path, binaries: Mapping[str, Path], rapl: str) -> None:
        self.fake_sys = sys_with_power_caps(rapl, folder) if rapl else None
        make_private_places()
        replace_sys(self.fake_sys)
        components.iptables_programs(Path("/run/iptables"), packages)
        make_network()
        self.folder = folder
        self._processes = Processes(folder / "logs")
        self._running: dict[str, Child] = {}
        node_token = secrets.token_hex(16)
        user = User(node_token, f"system:node:{NODE_NAME}", "system:nodes")
        self._commands = {"containerd": components.containerd(folder, packages)}
        self.start("containerd")
        self._running["containerd"].wait_until(self._containerd_answers, READY_S)
        self.plane = plane = ControlPlane(APISERVER_FLAGS, addresses=[NODE_IP, SERVICE_IP], users=[user])
        self.import_image(write_busybox_image(_busybox(packages), folder / "busybox.tar"))
        kubeconfig, ca_file = plane.kubeconfig, plane.ca_file
        manager = binaries["kube-controller-manager"]
        key = plane.certificates.service_account_key
        self._commands |= {
            "kube-controller-manager": components.controller_manager(manager, kubeconfig, ca_file, key),
            "kube-scheduler": components.scheduler(binaries["kube-scheduler"], folder, kubeconfig),
            "kubelet": components.kubelet(binaries["kubelet"], folder, plane.url, ca_file, node_token),
            "kube-proxy": components.kube_proxy(binaries["kube-proxy"], folder, kubeconfig),
        }
        for name in self._commands:
            self.start(name)
        serve_names(NODE_IP, plane.api)
        self._running["kubelet"].wait_until(self._ready, READY_S)
        plane.apply(volumes())

    def start(self, name: str, *command: str) -> None:
        """Start it, or do nothing while it runs; with a command something new."""
        if command:
            self._commands[name] = list(command)
        if name not in self._running or not self._running[name].running:
            self._running[name] = self._processes.start(name, self._commands[name])

    def stop(self, name: str) -> None:
        self._running[name].stop()

    def kill(self, name: str) -> None:
        self._running[name].kill()

    def run(self, *command: str) -> Mapping[str, Any]:
        """A program in the node's namespaces, to its end."""
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        return {"code": done.returncode, "output": done.stdout, "errors": done.stderr}

    def import_image(self, archive: str | Path) -> None:
        """Make an image known to kubelet, out of an archive as docker or OCI write it."""
        done = self.run(*_CTR, "images", "import", str(archive))
        if done["code"] != 0:
            raise OSError(f"cannot import {archive}: {done['errors'].strip()}")

    def _containerd_answers(self) -> bool:
        return Path(CONTAINERD_SOCKET).exists() and self.run(*_CTR, "version")["code"] == 0

    def _ready(self) -> bool:
        try:
            node = self.plane.api.get(f"/api/v1/nodes/{NODE_NAME}")
            self.plane.api.get("/api/v1/namespaces/default/serviceaccounts/default")
        except ApiError:
            return False
        conditions = {one["type"]: one["status"] for one in node["status"].get("conditions", ())}
        return conditions.get("Ready") == "True" and not node["spec"].get("taints")


_CTR = ("ctr", f"--address={CONTAINERD_SOCKET}", "--namespace=k8s.io")


def _busybox(packages: Path) -> Path:
    return next(
        path
        for path in (packages / "bin/busybox", packages / "usr/bin/busybox", Path("/bin/busybox"))
        if path.is_file()
    )


def main(text: str) -> int:
    """Start; then obey until the owner has no more to say."""
    options = json.loads(text)
    os.environ["TMPDIR"] = options["folder"]  # whatever makes a temporary folder: the keeper removes it
    folder = Path(options["folder"])
    (folder / "logs").mkdir()
    binaries = {name: Path(path) for name, path in options["binaries"].items()}
    listener = socket.socket(fileno=options["listener"])
    inside = Inside(folder, Path(options["packages"]), binaries, options["rapl"])
    relay(listener, inside.plane.port)
    _say(
        {
            "folder": str(folder),
            "port": listener.getsockname()[1],
            "token": inside.plane.admin_token,
            "ca_file": str(inside.plane.ca_file),
            "fake_sys": str(inside.fake_sys or ""),
        }
    )
    verbs: Mapping[str, Callable[..., Any]] = {
        "start": inside.start,
        "stop": inside.stop,
        "kill": inside.kill,
        "run": inside.run,
        "import_image": inside.import_image,
    }
    for line in sys.stdin:
        verb, *arguments = json.loads(line)
        _say(_answer(verbs[verb], arguments))
    return 0


def _answer(act: Callable[..., Any], arguments: Sequence[str]) -> Mapping[str, Any]:
    try:
        return {"result": act(*arguments)}
    except Exception as error:  # noqa: BLE001 - the owner raises it
        return {"error": f"{type(error).__name__}: {error}"}


def _say(answer: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
