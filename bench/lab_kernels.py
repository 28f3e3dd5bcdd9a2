"""Parts of the lab's compiled code that a run calls only when it must, for measuring them alone."""

from __future__ import annotations

from joulie.lab.compiling import entry
from joulie.lab.memory_kernel import run_of, zones_of
from joulie.lab.plant_kernel import heat_zone, plant_step
from joulie.lab.ranking_kernel import scanned_best
from joulie.lab.world import World


@entry
def heat_everything(world: World, dt_s: float) -> None:
    """One step of the plant in which every device is looked at."""
    run_of(world).now_s += dt_s
    plant_step(world, dt_s)
    for zone in range(len(zones_of(world))):
        heat_zone(world, zone, dt_s)


@entry
def scan(world: World, times: int) -> int:
    """Full scans for the first shape."""
    found = 0
    for _ in range(times):
        found += scanned_best(world, 0)
    return found
