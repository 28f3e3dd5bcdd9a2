"""`joulie simulator`: simulated hardware behind HTTP."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from joulie.cli.live import on_cluster, read_objects
from joulie.cli.options import kubeconfig_options, log_level_option
from joulie.errors import InputError

if TYPE_CHECKING:
    from joulie.simulator.load_file import LoadTimeline
    from joulie.simulator.simulation import Simulation

_EPILOG = """\b
Examples:
  joulie simulator                            simulate the nodes and pods of the current cluster
  joulie simulator --from cluster.yaml        those of a file, without a cluster
  joulie simulator --from cluster.yaml --load load.csv
  SIM_SPEED=60 joulie simulator --from cluster.yaml

\b
  curl localhost:18080/telemetry/NODE
  curl localhost:18080/control/NODE -d '{"action": "rapl.set_power_cap_watts", "capWatts": 300}'
  curl localhost:18080/debug/faults/NODE -d '{"fault": "lying", "how": "nan"}'

\b
Settings are environment variables: joulie config simulator
"""


@click.command(epilog=_EPILOG)
@click.option(
    "-f",
    "--from",
    "filenames",
    multiple=True,
    type=click.Path(allow_dash=True),
    metavar="FILE",
    help="Nodes and pods from a file (YAML, JSON, List), a folder of such files, or - for standard input, instead of "
    "a cluster; repeatable.",
)
@click.option(
    "--load",
    "load_file",
    type=click.Path(),
    metavar="FILE",
    help="Load of nodes over time, as CSV lines time_s,node,cpu,gpu; overrides the load of their pods.",
)
@kubeconfig_options
@log_level_option
def command(filenames: tuple[str, ...], load_file: str | None, kubeconfig: str, context: str, log_level: str) -> None:
    """Simulate hardware behind HTTP, for agents, demos and tests.

    Every node of the cluster gets CPUs and GPUs according to its labels, its capacity and the catalogue. They draw
    power depending on the pods bound to the node, follow caps as real hardware does, heat up, throttle, and do less
    work under a cap. The facility's cooling is simulated too, and can be queried like a Prometheus server.
    """
    from joulie.logs import start_logging
    from joulie.settings import SimulatorSettings, load
    from joulie.simulator.simulation import Simulation
    from joulie.sources.catalogue_file import read_catalogue

    start_logging(log_level)
    settings = load(SimulatorSettings, os.environ)
    catalogue = read_catalogue(settings.hardware.hardware_catalog_path)
    simulation = Simulation(settings, catalogue, timeline=_timeline(load_file))
    sys.exit(_run(simulation, filenames, kubeconfig, context))


def _timeline(path: str | None) -> LoadTimeline | None:
    from joulie.simulator.load_file import parse_load_file

    if path is None:
        return None
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise InputError(f"{path}: {reason}") from None
    return parse_load_file(text, path)


def _run(simulation: Simulation, filenames: tuple[str, ...], kubeconfig: str, context: str) -> int:
    from joulie.simulator.process import run, take

    if filenames:
        import asyncio

        take(simulation, read_objects(filenames).snapshot)
        return asyncio.run(run(simulation))

    from joulie.cluster.watch.log import WatchLog

    return on_cluster(
        kubeconfig, context, WatchLog("simulator"), "joulie-simulator", lambda cluster: run(simulation, cluster)
    )
