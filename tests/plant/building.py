"""Small fleets to look at."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from joulie.catalogue.lookup import Catalogue
from joulie.plant.curves import Numbers
from joulie.plant.fleet import Fleet, FleetLoad
from joulie.plant.machines import PlantMachine, cpu_kind, gpu_kind, unknown_cpu, unknown_gpu

CATALOGUE = Catalogue()


def cpu_node(model: str = "EPYC 9654", sockets: int = 2) -> PlantMachine:
    known = CATALOGUE.cpu(model)
    assert known is not None
    return PlantMachine(cpu_kind(known, sockets))


def gpu_node(model: str = "H100 SXM", gpus: int = 4) -> PlantMachine:
    known = CATALOGUE.gpu(model)
    board = gpu_kind(known) if known else unknown_gpu(model, "nvidia", 300.0, 100.0)
    return PlantMachine(cpu_node().cpu, board, gpus)


def unknown_node(cores: float = 64.0) -> PlantMachine:
    return PlantMachine(unknown_cpu(None, 1, cores, 3.5 * cores))


MIXED = (
    cpu_node(),
    cpu_node("EPYC 9965", 1),
    cpu_node("Xeon Gold 6530"),
    unknown_node(),
    gpu_node(),
    gpu_node("MI300X", 8),
    gpu_node("A40", 2),
)


def busy(fleet: Fleet, cpu: float | Numbers = 1.0, gpu: float | Numbers = 1.0, **other: float) -> FleetLoad:
    """The same load on all nodes and boards, or one for each."""
    load = fleet.idle_load()
    load.cpu[:], load.gpu[:] = cpu, gpu
    for name, value in other.items():
        getattr(load, name)[:] = value
    return load


def settled(fleet: Fleet, load: FleetLoad, seconds: int = 20, inlet_c: float = 25.0) -> Fleet:
    """After caps have settled, before temperatures have."""
    for _ in range(seconds):
        fleet.step(1.0, load, inlet_c)
    return fleet


shares = st.floats(0.0, 1.0)
steps_s = st.one_of(st.floats(0.0, 0.01), st.floats(0.0, 5.0), st.floats(0.0, 100_000.0))
inlets_c = st.floats(-20.0, 60.0)


@st.composite
def loads(draw: st.DrawFn, machines: tuple[PlantMachine, ...] = MIXED) -> FleetLoad:
    """Any load of a fleet of these machines."""
    empty = Fleet(machines).idle_load()
    # A few values repeated over the nodes find as much as one for each, and much sooner.
    values = draw(st.lists(shares, min_size=1, max_size=12))
    turned = (np.roll(values, turn) for turn in range(len(FleetLoad.__slots__)))
    return FleetLoad(
        *(np.resize(some, getattr(empty, name).shape) for some, name in zip(turned, FleetLoad.__slots__, strict=True))
    )
