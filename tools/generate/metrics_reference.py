"""The reference page of metrics, generated from what the processes export."""

from __future__ import annotations

from joulie.agent import metrics as agent
from joulie.catalogue.lookup import Catalogue
from joulie.control.placement.board import ScoreBoard
from joulie.extender.metrics import ExtenderMetrics
from joulie.metrics import Described
from joulie.operator.metrics import OperatorMetrics
from joulie.settings import ExtenderSettings, SimulatorSettings, load
from joulie.simulator import metrics as simulator
from joulie.simulator.simulation import Simulation
from tools.generate.reference import NOTE, table

_INTRO = """\
Every process serves `/metrics` in the Prometheus text format on its `METRICS_ADDR`. A histogram has the series
`_bucket`, `_sum` and `_count`. [Monitor Joulie](../how-to/monitoring.md) has alerts and dashboards based on these.
"""
_REMARKS = {
    "operator": "Port 8081. Metrics about nodes are exported only by the leading operator.",
    "agent": "Port 8080. A pool agent exports these for each of its nodes.",
    "extender": "Port 9877.",
    "simulator": "Port 18080, together with its API; only for simulated hardware.",
}


def metrics_of_processes() -> dict[str, list[Described]]:
    """Everything that each process exports."""
    catalogue, extender = Catalogue(), load(ExtenderSettings, {})
    board = ScoreBoard(extender.score, extender.marginal, extender.hardware, catalogue)
    return {
        "operator": OperatorMetrics(lambda: True).described(),
        "agent": agent.described(),
        "extender": ExtenderMetrics(board, lambda: 0.0).described(),
        "simulator": simulator.described(Simulation(load(SimulatorSettings, {}), catalogue)),
    }


def metrics_page() -> str:
    """A table for each process."""
    page = ["# Metrics", NOTE.format(source="src/joulie/{operator,agent,extender,simulator}/metrics.py"), _INTRO]
    for process, metrics in metrics_of_processes().items():
        rows = [
            [f"`{name}`", kind, ", ".join(f"`{label}`" for label in labels), meaning]
            for name, kind, meaning, labels in metrics
        ]
        page += [
            f"## {process.capitalize()}\n",
            f"{_REMARKS[process]}\n",
            table(["metric", "type", "labels", "meaning"], rows),
        ]
    return "\n".join(page)
