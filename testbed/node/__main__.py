"""`make node`: a real node to play with until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from testbed.build import KUBERNETES_VERSION, binary
from testbed.node.node import Node, parts
from testbed.node.rapl import NAMES
from testbed.processes import ProcessFailed
from testbed.unavailable import Unavailable

console = Console(highlight=False, soft_wrap=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Build, start, say how to use it, wait, stop."""
    options = _options(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        kubectl = binary("kubectl")
        if options.fetch:
            parts()
            binary("kwok")
            return 0
        started_s = time.monotonic()
        with Node(options.rapl) as node:
            if options.kwok:
                node.add_fake_nodes(options.kwok)
            for archive in options.image:
                node.import_image(archive)
            took_s = time.monotonic() - started_s
            console.print(f"{node.name} is Ready after {took_s:.0f} s; Kubernetes {KUBERNETES_VERSION} at {node.url}\n")
            console.print(_instructions(node, kubectl))
            threading.Event().wait()
    except Unavailable as unavailable:
        Console(stderr=True).print(f"no node on this machine: {unavailable.reason}", markup=False)
        return 1
    except ProcessFailed as failure:
        Console(stderr=True).print(str(failure), markup=False)
        return 1
    except KeyboardInterrupt:
        console.print("stopped; nothing is left")
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make node ARGS=…", description=__doc__)
    parser.add_argument("--rapl", choices=NAMES, default="", help="power caps that pods find in the node's /sys")
    parser.add_argument("--kwok", type=int, default=0, metavar="N", help="so many nodes beside it that KWOK plays")
    parser.add_argument(
        "--image", type=Path, action="append", default=[], metavar="FILE", help="an archive as `docker save` writes it"
    )
    parser.add_argument("--fetch", action="store_true", help="only fetch and build what a node needs")
    return parser.parse_args(argv)


def _instructions(node: Node, kubectl: Path) -> str:
    caps = f"\nPower caps of the node are files below {node.fake_sys}." if node.fake_sys else ""
    return f"""In another terminal:

  export KUBECONFIG={node.kubeconfig}
  alias kubectl={kubectl}
  kubectl get nodes,pods -A
{caps}
Logs are in {node.folder / "logs"}. Ctrl-C stops everything and removes it."""


if __name__ == "__main__":
    sys.exit(main())
