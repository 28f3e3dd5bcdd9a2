"""The owner's side: `with Node() as node:` starts a real node, and the end of the block leaves nothing behind."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from testbed.api import Api
from testbed.build import CONTROL_PLANE, NODE, binaries, binary, say
from testbed.credentials import write_kubeconfig
from testbed.golang import Report
from testbed.node import keeper
from testbed.node.components import NODE_NAME
from testbed.node.kwok import kwok, kwok_nodes
from testbed.node.machine import check_machine
from testbed.node.packages import packages, search_paths
from testbed.processes import ProcessFailed, environment


class Parts(NamedTuple):
    """What a node is made of, all of it in the cache."""

    packages: Path
    binaries: Mapping[str, Path]


def parts(report: Report = say) -> Parts:
    """Fetch and build what is not there yet; Unavailable where this machine cannot run a node."""
    check_machine()
    return Parts(packages(), binaries([*CONTROL_PLANE, *NODE], report))


class Done(NamedTuple):
    """What a program in the node's namespaces left."""

    code: int
    output: str
    errors: str


class Node:
    """A running node with its control plane."""

    name = NODE_NAME

    def __init__(self, rapl: str = "", report: Report = say) -> None:
        """`rapl` names a machine whose power caps pods find in the node's /sys; without it there is none."""
        own = parts(report)
        options = {
            "packages": str(own.packages),
            "binaries": {name: str(path) for name, path in own.binaries.items()},
            "rapl": rapl,
        }
        pipe = subprocess.PIPE
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed in `stop`
        # Its own session: Ctrl-C in a terminal reaches us alone.
        self._keeper = subprocess.Popen(
            [sys.executable, "-m", "testbed.node.keeper", json.dumps(options)],
            cwd=keeper.ROOT,
            stdin=pipe,
            stdout=pipe,
            stderr=self._log,
            text=True,
            start_new_session=True,
            env={**environment(), **search_paths(own.packages)},
        )
        try:
            ready = self._read()
            self.folder, self.ca_file = Path(ready["folder"]), Path(ready["ca_file"])
            self.fake_sys = Path(ready["fake_sys"]) if ready["fake_sys"] else None
            self.url = f"https://127.0.0.1:{ready['port']}"
            self.api = Api(self.url, self.ca_file, ready["token"])
            self.kubeconfig = write_kubeconfig(self.folder / "kubeconfig", self.url, self.ca_file, ready["token"])
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End everything; seconds."""
        if self._keeper.stdin and not self._keeper.stdin.closed:
            self._keeper.stdin.close()
        self._keeper.wait()
        if self._keeper.stdout:
            self._keeper.stdout.close()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def import_image(self, archive: Path) -> None:
        """Make an image known to kubelet, out of an archive as `docker save` or an OCI tool writes it."""
        self._ask("import_image", str(archive.resolve()))

    def add_fake_nodes(self, count: int) -> None:
        """Nodes beside this one that exist only in name, played by KWOK."""
        kubeconfig = self.ca_file.parent / "kubeconfig"  # the one that is valid within
        self.start_program("kwok", *kwok(binary("kwok"), kubeconfig, self.folder))
        self.api.apply(kwok_nodes(count))

    def start_program(self, name: str, *command: str) -> None:
        """Something that goes on in the node's namespaces, until `stop_component` or the node's end."""
        self._ask("start", name, *command)

    def start_component(self, name: str) -> None:
        """kubelet, containerd, kube-proxy, kube-scheduler or kube-controller-manager, which was stopped or killed."""
        self._ask("start", name)

    def stop_component(self, name: str) -> None:
        """In good order. Pods run on without a kubelet."""
        self._ask("stop", name)

    def kill_component(self, name: str) -> None:
        """Without a chance to say goodbye."""
        self._ask("kill", name)

    def restart_kubelet(self) -> None:
        """As an upgrade of the node does it: kubelet then looks at all its pods anew."""
        self.stop_component("kubelet")
        self.start_component("kubelet")

    def run(self, *command: str) -> Done:
        """A program in the node's namespaces, to its end."""
        return Done(**self._ask("run", *command))

    def kill_container(self, container_id: str) -> None:
        """SIGKILL for its first process, as by the out-of-memory killer; the id as a pod's status has it."""
        name = container_id.removeprefix("containerd://")
        done = self.run("ctr", "--namespace=k8s.io", "tasks", "kill", "--signal=SIGKILL", name)
        if done.code != 0:
            raise ProcessFailed(f"cannot kill {container_id}: {done.errors.strip()}")

    def logs(self, name: str, lines: int = 30) -> str:
        """The last lines of a component's log."""
        text = (self.folder / "logs" / f"{name}.log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def _ask(self, verb: str, *arguments: str) -> Any:
        if self._keeper.stdin is None:
            raise ProcessFailed("the node has no pipe")
        self._keeper.stdin.write(json.dumps([verb, *arguments]) + "\n")
        self._keeper.stdin.flush()
        answer = self._read()
        if "error" in answer:
            raise ProcessFailed(f"{verb} {' '.join(arguments)}: {answer['error']}")
        return answer["result"]

    def _read(self) -> Any:
        line = self._keeper.stdout.readline() if self._keeper.stdout else ""
        if not line:
            self._keeper.wait()
            self._log.seek(0)
            raise ProcessFailed("the node ended:\n" + "".join(self._log.readlines()[-30:]))
        return json.loads(line)
