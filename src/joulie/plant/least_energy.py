"""The least energy that devices of a kind can spend on work, over all loads, caps, temperatures and feeding.

Nothing is searched on a grid: wherever a minimum is not exact, what is returned lies below it. Joules are at the wall,
for what a core or a board does in a second at uncapped speed, without what an idle node draws anyway.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from joulie.plant.curves import FREQUENCY_EXPONENT, Numbers
from joulie.plant.fleet import REST_PER_CPU_W, REST_PER_GPU_W
from joulie.plant.gpus import BOARD_SHAPE, board_demand_w
from joulie.plant.machines import GPU_FREQUENCY_FLOOR, CpuKind, GpuKind
from joulie.plant.sweeps import SATURATED_DRAW, SWEEPS

_LOADS = np.linspace(0.0, 1.0, len(BOARD_SHAPE))
_STEPS = 128  # of the table
_HALVINGS = 45
_CELLS = 24  # of feeding


def core_j_per_s(cpu: CpuKind, held_w: float, utilisation: Numbers, sensitivity: Numbers) -> Numbers:
    """Work of one core at this utilisation; `sensitivity` is the share of its time that grows as frequency falls.

    `held_w` is idle power of the node that a pod with all its cores has to answer for.
    """
    moving_w = utilisation * (dynamic_w(cpu) / cpu.cores)
    return least_product(moving_w, REST_PER_CPU_W * moving_w + held_w / cpu.cores, sensitivity, cpu.frequency_floor)


def core_w(cpu: CpuKind, held_w: float, utilisation: Numbers) -> Numbers:
    """The least power for a core that is held at this utilisation, however slow it is."""
    moving_w = utilisation * (dynamic_w(cpu) / cpu.cores)
    slowest = cpu.frequency_floor**FREQUENCY_EXPONENT
    return np.asarray(moving_w * (slowest + REST_PER_CPU_W) + held_w / cpu.cores)


def dynamic_w(cpu: CpuKind) -> float:
    """What packages draw above idle at full frequency, over their load, at the load where that is least.

    Curves are linear between their points, so this ratio rises or falls between two and is least at one.
    """
    rise = np.asarray(cpu.shape[1:]) - cpu.shape[0]
    return cpu.max_w * float(np.min(rise / np.linspace(0.0, 1.0, len(cpu.shape))[1:]))


def board_j_per_s(
    gpu: GpuKind, held_w: float, load: tuple[Numbers, Numbers], sensitivity: Numbers, least_fed: Numbers
) -> Numbers:
    """Work of one board at a load between two, fed at 1 down to `least_fed`; `held_w` is idle power for each board."""
    least_j = np.full(np.shape(sensitivity), np.inf)
    low, high = load
    for cell in range(_CELLS):
        fed, less_fed = least_fed ** (cell / _CELLS), least_fed ** ((cell + 1) / _CELLS)
        drawn_w, most_w = _demand_w(gpu, low * less_fed), _demand_w(gpu, high * fed)
        least_j = np.minimum(least_j, _board_cell(gpu, held_w, drawn_w, most_w, fed, sensitivity))
    return least_j


def _board_cell(
    gpu: GpuKind, held_w: float, demand_w: Numbers, most_w: Numbers, fed: Numbers, sensitivity: Numbers
) -> Numbers:
    """With this demand, and limits that reach as low as they do for `most_w`.

    Between two measured limits power and slowdown are linear, one rising, one falling: their product is concave, so it
    is least at a measured limit or at the lowest. Where power is held at idle, it is least at the upper end of that.
    """
    sweep = SWEEPS[gpu.sweep]
    lowest = np.minimum(gpu.min_w * SATURATED_DRAW / most_w, 1.0)
    fixed_w = REST_PER_GPU_W * (demand_w - gpu.idle_w) + held_w
    least_j, below_w = np.full(np.shape(demand_w), np.inf), np.full(np.shape(demand_w), np.inf)
    for limit in (0.0, *sweep.shares):
        share = np.maximum(limit, lowest)
        power = np.minimum(np.interp(share, sweep.shares, sweep.power), share / SATURATED_DRAW)
        moving_w = np.maximum(demand_w * power - gpu.idle_w, 0.0)
        slowdown = np.interp(share, sweep.shares, sweep.slowdown) / fed
        time = 1.0 - sensitivity + sensitivity * slowdown
        at_idle = np.where(below_w <= 0.0, 0.0, moving_w)
        product = least_product(at_idle, fixed_w, sensitivity * slowdown / time, GPU_FREQUENCY_FLOOR)
        least_j, below_w = np.minimum(least_j, time * product), moving_w
    return least_j


def _demand_w(gpu: GpuKind, load: Numbers) -> Numbers:
    return board_demand_w(np.asarray(gpu.max_w), np.asarray(np.interp(load, _LOADS, BOARD_SHAPE)))


def least_product(moving_w: Numbers, fixed_w: Numbers, sensitivity: Numbers, floor: float) -> Numbers:
    """The least of (moving · f^1.35 + fixed) · (1 − sensitivity + sensitivity / f) over frequencies f from floor to 1.

    For each f it is linear in the share that moves and in the sensitivity. So the least over f is concave in both, and
    a line between two exact values never lies above it: the table needs no finer grid to be a bound.
    """
    table = _least_products(floor)
    total_w = moving_w + fixed_w
    share = np.divide(moving_w, total_w, out=np.zeros_like(total_w), where=total_w > 0)
    row, column = share * _STEPS, np.broadcast_to(sensitivity, np.shape(share)) * _STEPS
    above, left = (np.minimum(place.astype(np.intp), _STEPS - 1) for place in (row, column))
    down, right = row - above, column - left
    upper = table[above, left] * (1.0 - right) + table[above, left + 1] * right
    lower = table[above + 1, left] * (1.0 - right) + table[above + 1, left + 1] * right
    return np.asarray(total_w * (upper * (1.0 - down) + lower * down))


@lru_cache(maxsize=64)
def _least_products(floor: float) -> Numbers:
    """By the share that moves and by sensitivity, for a total of 1. It falls with f and then rises: it turns once."""
    shares = np.linspace(0.0, 1.0, _STEPS + 1)
    moves, feels = shares[:, None], shares[None, :]
    low, high = np.full((_STEPS + 1, _STEPS + 1), floor), np.ones((_STEPS + 1, _STEPS + 1))
    power = FREQUENCY_EXPONENT
    for _ in range(_HALVINGS):
        f = 0.5 * (low + high)
        saved = (1.0 - moves) * feels
        spent = moves * (power * (1.0 - feels) * f + (power - 1.0) * feels) * f**power
        falls = spent < saved
        low, high = np.where(falls, f, low), np.where(falls, high, f)
    return np.asarray((moves * high**power + 1.0 - moves) * (1.0 - feels + feels / high))
