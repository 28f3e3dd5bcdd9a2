"""The simulated nodes in a building whose cooling is sized for what they usually draw, not for all at their limits."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from joulie.catalogue.lookup import Catalogue
from joulie.cluster.decoding import decoders
from joulie.demo.scenario.machines import node_manifests
from joulie.model.snapshot import Node
from joulie.plant.cooling import Cooling
from joulie.settings import SimulatorSettings
from joulie.simulator.simulation import Simulation

# Of the cooling that all nodes at their limits would need. On a hot and busy afternoon it is just too little, so the
# air at the servers warms up.
COOLING_SHARE = 0.22


def demo_nodes() -> list[Node]:
    return [decoders.decode_node(msgspec.json.encode(manifest)) for manifest in node_manifests()]


def demo_simulation(settings: SimulatorSettings, clock: Callable[[], float]) -> Simulation:
    """All nodes are there from the start, so the building is never rebuilt."""
    simulation = Simulation(settings, Catalogue(), clock=clock)
    for node in demo_nodes():
        simulation.put_node(node)
    simulation.settle_changes()
    simulation.facility.cooling = Cooling(simulation.facility.cooling.rated_w * COOLING_SHARE)
    return simulation
