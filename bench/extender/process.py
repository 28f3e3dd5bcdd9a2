"""`joulie extender` as a process of its own on a cluster that another process plays."""

from __future__ import annotations

import contextlib
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.joulie_process import JoulieProcess
from testbed.processes import free_port

START_S = 120.0


class ExtenderProcess(JoulieProcess):
    """Ready to be asked as soon as it is there."""

    def __init__(self, folder: Path, port: int, metrics_port: int, arguments: list[str], **settings: str) -> None:
        self.port = port
        self._url = f"http://127.0.0.1:{metrics_port}"
        addresses = {"EXTENDER_ADDR": f"127.0.0.1:{port}", "METRICS_ADDR": f"127.0.0.1:{metrics_port}"}
        super().__init__("joulie", ["extender", *arguments], folder / f"extender-{port}.log", **addresses, **settings)
        try:
            self.wait_until(self._ready, START_S)
        except BaseException:
            self.stop()
            raise

    def state(self) -> dict[str, dict[str, Any]]:
        """What it says about each node."""
        with urllib.request.urlopen(f"{self._url}/debug/scoring", timeout=30) as answer:
            return {node["nodeName"]: node for node in json.load(answer)["nodes"]}

    def requests_answered(self) -> dict[str, float]:
        """By verb, as it counts them itself."""
        with urllib.request.urlopen(f"{self._url}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        counted = {verb: f"joulie_scheduler_{verb}_requests_total{{" for verb in ("filter", "prioritize")}
        return {
            verb: sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(start))
            for verb, start in counted.items()
        }

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/readyz", timeout=5):
                return True
        except (OSError, urllib.error.URLError):
            return False


@contextlib.contextmanager
def fed_extender(folder: Path, nodes: int, events_per_s: float = 0.0) -> Iterator[ExtenderProcess]:
    """An extender that knows so many nodes; with events, it is scraped every second, too."""
    api_port, port, metrics_port = free_port(), free_port(), free_port()
    feed_arguments = [str(nodes), str(events_per_s), "--port", str(api_port)]
    if events_per_s:
        feed_arguments += ["--scrape", f"http://127.0.0.1:{metrics_port}/metrics"]
    kubeconfig = folder / f"kubeconfig-{api_port}"
    kubeconfig.write_text(json.dumps(_kubeconfig(api_port)))
    with (
        JoulieProcess("bench.twin_feed", feed_arguments, folder / f"feed-{api_port}.log"),
        ExtenderProcess(folder, port, metrics_port, ["--kubeconfig", str(kubeconfig)]) as extender,
    ):
        yield extender


def _kubeconfig(port: int) -> dict[str, Any]:
    name = "fed"
    return {
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": name, "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
