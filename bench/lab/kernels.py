"""Parts of the lab's compiled code that a run calls only when it must, for measuring them alone."""

from __future__ import annotations

from joulie.lab.kernels.compiling import entry
from joulie.lab.kernels.placement.ranking import scanned_best
from joulie.lab.kernels.plant import heat_zone, plant_step
from joulie.lab.kernels.world import World


@entry
def heat_everything(world: World, dt_s: float) -> None:
    """One step of the plant in which every device is looked at."""
    world.run.now_s += dt_s
    plant_step(world, dt_s)
    for zone in range(len(world.zones)):
        heat_zone(world, zone, dt_s)


@entry
def scan(world: World, times: int) -> int:
    """Full scans for the first shape."""
    found = 0
    for _ in range(times):
        found += scanned_best(world, 0)
    return found
