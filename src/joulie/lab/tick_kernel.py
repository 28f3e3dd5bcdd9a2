"""What a tick changes in the world."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulie.lab.compiling import entry
from joulie.lab.memory_kernel import nodes_of, run_of
from joulie.lab.plant_kernel import plant_step
from joulie.lab.power_kernel import refresh
from joulie.lab.world import WATT, Numbers, World


@entry
def set_caps(world: World, rows: NDArray[np.int64], cpu_w: Numbers, gpu_w: Numbers) -> None:
    """New caps, already within the hardware's range."""
    for place in range(len(rows)):
        node = rows[place]
        nodes_of(world)[node].cpu_cap_w = cpu_w[place]
        nodes_of(world)[node].gpu_cap_w = gpu_w[place]
        refresh(world, node)


@entry
def close_meters(world: World) -> None:
    """Reads every meter now; the plant's last step may be a short one."""
    run, nodes = run_of(world), nodes_of(world)
    dt_s = run.now_s - run.steps * run.step_s
    if dt_s > 0:
        plant_step(world, dt_s)
    for node in range(len(nodes)):
        nodes[node].energy_j += nodes[node].wall / WATT * (run.now_s - nodes[node].metered_at_s)
        nodes[node].metered_at_s = run.now_s


def recap(world: World, rows: NDArray[np.int64], cpu_pct: Numbers, gpu_pct: Numbers) -> None:
    """Caps in percent of the maximum, as the agent turns them into watts: 100 % is none."""
    nodes = world.nodes[rows]
    cpu_w, gpu_w = nodes["cpu_max_w"] * cpu_pct / 100.0, nodes["gpu_max_w"] * gpu_pct / 100.0
    set_caps(world.address, rows, cpu_w, np.where(nodes["gpus"] > 0, gpu_w, nodes["gpu_max_w"]))
