"""`make cluster`: a control plane with machines that do not exist, to play with until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Sequence

from rich.console import Console

from testbed.build import CONTROL_PLANE, KUBERNETES_VERSION, binaries
from testbed.control_plane import ControlPlane
from testbed.objects import fill
from testbed.unavailable import ControlPlaneUnavailable

console = Console(highlight=False, soft_wrap=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Build, start, fill, say how to use it, wait, stop."""
    options = _options(argv)
    # A stop request by any name is the same wish; as an exception it also interrupts a build or the filling.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        tools = binaries([*CONTROL_PLANE, "kubectl"])
        with ControlPlane() as plane:
            started_s = time.monotonic()
            plane.install_crds()
            console.print(f"creating {options.nodes} nodes and {options.nodes * options.pods_per_node} pods …")
            fill(plane, options.nodes, options.pods_per_node)
            console.print(
                f"done in {time.monotonic() - started_s:.0f} s; kube-apiserver {KUBERNETES_VERSION} at {plane.url}\n"
            )
            console.print(_instructions(plane, str(tools["kubectl"])))
            threading.Event().wait()
    except ControlPlaneUnavailable as unavailable:
        Console(stderr=True).print(f"no control plane on this machine: {unavailable.reason}", markup=False)
        return 1
    except KeyboardInterrupt:
        console.print("stopped; nothing is left")
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m testbed", description=__doc__)
    parser.add_argument("--nodes", type=int, default=300, help="how many fake nodes (default: %(default)s)")
    parser.add_argument("--pods-per-node", type=int, default=5, help="pods for each of them (default: %(default)s)")
    return parser.parse_args(argv)


def _instructions(plane: ControlPlane, kubectl: str) -> str:
    return f"""In another terminal:

  export KUBECONFIG={plane.kubeconfig}
  alias kubectl={kubectl}
  kubectl get nodes -L joulie.io/rack
  kubectl get nodehardwares

Logs are in {plane.folder}. Ctrl-C stops everything and removes it."""


if __name__ == "__main__":
    sys.exit(main())
