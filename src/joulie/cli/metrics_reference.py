"""The page of metrics, written from what the processes export."""

from __future__ import annotations

from joulie.agent import metrics as agent
from joulie.catalogue.lookup import Catalogue
from joulie.cli.reference import NOTE, table
from joulie.control.board import ScoreBoard
from joulie.extender.metrics import ExtenderMetrics
from joulie.metrics import Described
from joulie.operator.metrics import OperatorMetrics
from joulie.settings import ExtenderSettings, SimulatorSettings, load
from joulie.simulator import metrics as simulator
from joulie.simulator.simulation import Simulation

_INTRO = """\
Every process serves `/metrics` in Prometheus' text form on its `METRICS_ADDR`. A histogram has the series `_bucket`,
`_sum` and `_count`. [Monitor Joulie](../how-to/monitoring.md) has alerts and dashboards that are made of these.
"""
_REMARKS = {
    "operator": "Port 8081. What is said of nodes is said by the operator that leads, and by no other.",
    "agent": "Port 8080. A pool agent says the same of each of its nodes.",
    "extender": "Port 9877.",
    "simulator": "Port 18080, beside its other answers: only where hardware is simulated.",
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
