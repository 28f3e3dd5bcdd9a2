"""The soak in its short form: every kind of fault once; and its checks, each of which can fail."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from threading import Thread

import pytest

from soak import invariants, objects
from soak.faults import FAULTS
from soak.rounds import Result, deck, settle
from soak.scene import Scene
from soak.watching import Watch

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("soak")]


@pytest.fixture(scope="module")
def scene(control_plane_binaries: None) -> Iterator[Scene]:
    with Scene(lambda _: None) as running:
        result = Result(0)
        settle(running, result, [], "first contact", lambda _: None)
        assert result.violations == []
        yield running


def test_each_kind_of_fault_once_and_everything_is_well_again(control_plane_binaries: None) -> None:
    command = [sys.executable, "-m", "soak", "--minutes", "0", "--faults", str(len(FAULTS)), "--seed", "16"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1500, check=False)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-3000:]
    assert "no invariant was violated" in run.stdout


def test_every_kind_is_dealt_before_any_is_dealt_again() -> None:
    dealt = deck(Random(1), FAULTS)
    assert {next(dealt).name for _ in FAULTS} == {fault.name for fault in FAULTS}


def test_a_cap_where_none_is_wanted_is_seen(scene: Scene) -> None:
    machines = scene.machines["sim-b"]
    machines.cap("node-00001", 700)
    seen = invariants.unsettled(scene)
    assert any(line.startswith("device: sim-b node-00001 cpu") for line in seen)
    assert "journal: sim-b node-00001 is capped, and no journal names that very device" in seen
    assert any(line.startswith("end: sim-b node-00001 cpu") for line in invariants.left_behind(scene))
    scene.components["sim-b"].kill()  # its machines boot anew
    scene.components["sim-b"].start()
    _until(lambda: invariants.unsettled(scene) == [])


def test_a_device_that_is_not_as_its_twin_wants_is_seen_and_so_is_a_lost_journal(scene: Scene) -> None:
    eco = next(name for name, host in scene.hosts.items() if not host.is_as_found)
    agent, host = scene.components[f"agent-{eco}"], scene.hosts[eco]
    agent.freeze()
    host.long_term(host.packages[0]).write_text("149000000\n")
    journal = scene.states.of(agent.name) / "restore.json"
    kept = journal.read_bytes()
    journal.unlink()
    watch = Watch(scene)
    _until(lambda: watch.violations == {f"journal: {eco} is capped, and what was found is not noted"})
    watch.close()
    seen = invariants.unsettled(scene)
    assert any(line.startswith(f"device: {eco} intel-rapl:0 holds 149 of 150 W") for line in seen)
    assert any(line.startswith(f"journal: {eco}") for line in seen)
    journal.write_bytes(kept)
    agent.start()
    _until(lambda: invariants.unsettled(scene) == [])


def test_watts_that_metrics_call_enforced_and_no_device_holds_are_seen(scene: Scene) -> None:
    name = next(iter(scene.hosts))
    agent = scene.components[f"agent-{name}"]
    agent.kill()
    with _planted_page(agent.metrics_port, f'joulie_agent_enforced_cap_watts{{node="{name}",device="cpu"}} 999\n'):
        seen = invariants.unsettled(scene)
    assert any(line.startswith(f"metrics: agent-{name} says that {name} cpu holds 999 W") for line in seen)
    agent.start()
    _until(lambda: invariants.unsettled(scene) == [])


def test_a_performance_pod_on_an_eco_node_and_one_that_waits_are_seen(scene: Scene) -> None:
    nodes = {node["metadata"]["name"]: node["metadata"]["labels"] for node in scene.get("/api/v1/nodes")}
    eco = next(name for name, labels in nodes.items() if labels["joulie.io/power-profile"] == "eco")
    for component in scene.components.values():
        if component.name.startswith("operator"):
            component.freeze()  # else it would put the node back to draining
    placed = objects.pod("pod-900", "performance", 1)
    placed["spec"]["nodeName"] = eco
    too_large = objects.pod("pod-901", "standard", 5000)
    scene.apply(placed, too_large)
    _until(lambda: len([line for line in invariants.unsettled(scene) if line.startswith("pod:")]) == 2)
    for name in ("pod-900", "pod-901"):
        scene.delete(f"/api/v1/namespaces/{objects.NAMESPACE}/pods/{name}")
    scene.heal()
    _until(lambda: invariants.unsettled(scene) == [])


def test_a_limit_out_of_range_and_a_false_report_are_seen_while_they_last(scene: Scene) -> None:
    eco = next(name for name, host in scene.hosts.items() if not host.is_as_found)
    agent, host = scene.components[f"agent-{eco}"], scene.hosts[eco]
    watch = Watch(scene)
    agent.freeze()
    host.long_term(host.packages[0]).write_text("400000000\n")
    time.sleep(6)  # longer than an agent may take to notice
    report = {"result": "applied", "message": "planted", "backend": "rapl", "updatedAt": "2026-01-01T00:00:00Z"}
    path = f"{objects.JOULIE}/nodetwins/{eco}/status"
    scene.plane.api.patch(path, {"status": {"controlStatus": {"cpu": report}}})
    _until(lambda: {line.split(":")[0] for line in watch.violations} == {"range", "claim"})
    watch.close()
    agent.start()
    _until(lambda: invariants.unsettled(scene) == [])


@contextmanager
def _planted_page(port: int, page: str) -> Iterator[None]:
    """Metrics of a process that lies."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            """Into no test's output."""

    with ThreadingHTTPServer(("127.0.0.1", port), Page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


def _until(condition: Callable[[], bool], within_s: float = 180.0) -> None:
    deadline_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.3)
