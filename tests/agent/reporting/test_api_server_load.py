"""What the agent costs the API server, counted by the API server itself."""

from __future__ import annotations

import socket
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from joulie.agent.reporting.status import REFRESH_S
from testbed.processes import free_port
from testbed.requests_seen import Request
from tests.agent.agent_processes import AgentProcess, CommandProcess
from tests.agent.test_process import put
from tests.agent.world import node, twin

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

pytestmark = pytest.mark.slow
NODES = 30
STEADY_S = 15.0
TWIN_PATCH = Request("APPLY", "nodetwins", "status")  # server-side apply is counted as a verb of its own
WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE")
OURS = frozenset({"nodes", "nodetwins", "nodehardwares", "nodepowerprofiles", "telemetryprofiles", "events"})


def test_three_writes_a_node_at_first_contact_and_then_only_what_is_due(
    fresh_cluster: ControlPlane, tmp_path: Path
) -> None:
    names = [f"n{number}" for number in range(NODES)]
    put(fresh_cluster, *(node(name) for name in names), *(twin(name, age_s=-36_000) for name in names))
    port = free_port()
    control = f"http://127.0.0.1:{port}/control/{{node}}"
    pool = {
        "AGENT_MODE": "pool",
        "RECONCILE_INTERVAL": "1s",
        "TELEMETRY_CPU_CONTROL": "http",
        "TELEMETRY_GPU_CONTROL": "none",
        "TELEMETRY_CPU_CONTROL_HTTP_ENDPOINT": control,
    }
    with CommandProcess(fresh_cluster, tmp_path, "simulator", "simulator", SIM_ADDR=f"127.0.0.1:{port}") as simulator:
        simulator.wait_until(lambda: _listens(port), 30, "it listens")
        before, began_s = fresh_cluster.metrics(), time.monotonic()
        with AgentProcess(fresh_cluster, tmp_path, **pool) as agent:
            agent.wait_until(lambda: _writes(fresh_cluster, before).total() >= 3 * NODES, 60, "all is reported")
            time.sleep(2)
            written = _writes(fresh_cluster, before)
            again = written[TWIN_PATCH] - NODES
            assert 0 <= again <= _refreshes(time.monotonic() - began_s)
            assert written - Counter({TWIN_PATCH: again}) == {
                ("POST", "nodehardwares", ""): NODES,
                ("APPLY", "nodehardwares", "status"): NODES,
                TWIN_PATCH: NODES,
            }
            steady = fresh_cluster.metrics()
            time.sleep(STEADY_S)
            seen = _requests(fresh_cluster, steady)
            assert not [request for request in seen if request.verb in ("GET", "LIST")]
            written = _writes(fresh_cluster, steady)
            assert set(written) <= {TWIN_PATCH}
            assert written.total() <= _refreshes(STEADY_S)


def _refreshes(within_s: float) -> float:
    """The most that may fall due: each node has its own moment in two minutes, and when that comes is chance."""
    return NODES * within_s / REFRESH_S * 3 + 3


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _requests(plane: ControlPlane, before: Counter[Request]) -> Counter[Request]:
    """Since then, of the kinds that an agent looks at."""
    seen = plane.metrics() - before
    return Counter({request: number for request, number in seen.items() if request.resource in OURS})


def _writes(plane: ControlPlane, before: Counter[Request]) -> Counter[Request]:
    seen = _requests(plane, before)
    return Counter({request: number for request, number in seen.items() if request.verb in WRITES})
