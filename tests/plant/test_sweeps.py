"""The slowdown under caps against the measurements it comes from."""

from __future__ import annotations

import csv
import statistics
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from joulie.plant.fleet import Fleet
from joulie.plant.machines import PlantMachine, unknown_gpu
from joulie.plant.sweeps import PROXY, SATURATED_DRAW, SWEEPS, Sweep, sweep_of
from tests.plant.building import busy, cpu_node, settled

TRACES = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "zeus_power_caps"
FILES = {"V100": "v100", "A40": "a40", "Quadro RTX 6000": "rtx6000"}
TOP_W = {"V100": 250.0, "A40": 300.0, "Quadro RTX 6000": 260.0}
SATURATED_FROM = 0.85


def _runs(file: str) -> dict[tuple[str, ...], dict[float, tuple[float, float]]]:
    path = TRACES / f"summary_power_{file}.csv"
    if not path.is_file():
        pytest.skip(f"SKIPPED LOUDLY: the Zeus traces are not beside this checkout ({path.name})")
    runs: dict[tuple[str, ...], dict[float, tuple[float, float]]] = defaultdict(dict)
    with path.open(newline="") as lines:
        for row in csv.DictReader(lines):
            run = (row["dataset"], row["network"], row["batch_size"], row["optimizer"])
            runs[run][float(row["power_limit"])] = (float(row["time_per_epoch"]), float(row["average_power"]))
    return runs


def _saturated(file: str) -> tuple[float, list[dict[float, tuple[float, float]]]]:
    runs = _runs(file)
    top_w = max(limit for run in runs.values() for limit in run)
    return top_w, [run for run in runs.values() if top_w in run and run[top_w][1] >= SATURATED_FROM * top_w]


def _medians(file: str) -> tuple[Sweep, float]:
    """Slowdown and energy by limit, and how much of the top limit is drawn there."""
    top_w, runs = _saturated(file)
    slowdown: dict[float, list[float]] = defaultdict(list)
    energy: dict[float, list[float]] = defaultdict(list)
    for run in runs:
        time_s, power_w = run[top_w]
        for limit_w, (limited_s, limited_w) in run.items():
            slowdown[limit_w].append(limited_s / time_s)
            energy[limit_w].append(limited_s * limited_w / (time_s * power_w))
    limits = sorted(slowdown)
    return Sweep(
        tuple(limit / top_w for limit in limits),
        tuple(statistics.median(slowdown[limit]) for limit in limits),
        tuple(statistics.median(energy[limit]) for limit in limits),
    ), statistics.median(run[top_w][1] / top_w for run in runs)


@pytest.mark.parametrize("board", list(SWEEPS))
def test_the_committed_table_holds_the_medians_of_the_traces(board: str) -> None:
    measured, draw = _medians(FILES[board])
    assert measured.shares == pytest.approx(SWEEPS[board].shares)
    assert measured.slowdown == pytest.approx(SWEEPS[board].slowdown, abs=1e-4)
    assert measured.energy == pytest.approx(SWEEPS[board].energy, abs=1e-4)
    assert draw == pytest.approx(SATURATED_DRAW, abs=0.01)


def test_the_p100_has_no_saturated_run_and_so_no_table() -> None:
    assert _saturated("p100")[1] == []
    assert sweep_of("Tesla-P100-PCIE-16GB") == PROXY


def _played(board: str, share: float) -> tuple[float, float]:
    """Slowdown of saturated work under a cap, and energy for the same work, over uncapped."""
    kind = unknown_gpu(board, "nvidia", TOP_W[board], SWEEPS[board].shares[0] * TOP_W[board])
    free, capped = (Fleet([PlantMachine(cpu_node().cpu, kind, 1)]) for _ in range(2))
    capped.gpus.set_cap_w(0, share * TOP_W[board])
    for fleet in (free, capped):
        settled(fleet, busy(fleet), 5)  # the cap has settled
        fleet.gpus.energy_j[:], fleet.gpus.work_s[:] = 0.0, 0.0
        settled(fleet, busy(fleet), 60)
    energy = (capped.gpus.energy_j / capped.gpus.work_s) / (free.gpus.energy_j / free.gpus.work_s)
    return float(free.gpus.work_s[0] / capped.gpus.work_s[0]), float(energy[0])


@pytest.mark.parametrize("board", list(SWEEPS))
def test_slowdown_under_caps_from_half_up_is_within_a_tenth_of_the_measured_medians(board: str) -> None:
    measured, _ = _medians(FILES[board])
    compared = 0
    for share, slowdown, energy in zip(*measured, strict=True):
        if share >= 0.5:
            played_slowdown, played_energy = _played(board, share)
            assert played_slowdown == pytest.approx(slowdown, rel=0.1), (board, share)
            assert played_energy == pytest.approx(energy, rel=0.1), (board, share)
            compared += 1
    assert compared >= 5


@pytest.mark.parametrize("name", ["H100 SXM", "MI300X", None, "no such board", "RTX 6000 Ada"])
def test_a_board_without_a_sweep_follows_the_v100(name: str | None) -> None:
    assert sweep_of(name) == "V100"


@pytest.mark.parametrize(
    ("name", "board"), [("Tesla-V100-SXM2-32GB", "V100"), ("NVIDIA A40", "A40"), ("Quadro-RTX-6000", "Quadro RTX 6000")]
)
def test_a_board_with_a_sweep_is_found_by_its_name(name: str, board: str) -> None:
    assert sweep_of(name) == board


@pytest.mark.parametrize("sweep", SWEEPS.values(), ids=SWEEPS)
def test_tables_rise_and_fall_the_way_caps_do(sweep: Sweep) -> None:
    assert np.all(np.diff(sweep.shares) > 0)
    assert np.all(np.diff(sweep.slowdown) < 0)
    assert np.all(np.diff(sweep.power) > 0)
    assert sweep.slowdown[-1] == sweep.energy[-1] == sweep.shares[-1] == 1.0


@pytest.mark.parametrize(
    ("name", "max_w", "lowest_w"), [("A40", 300.0, 100.0), ("V100", 250.0, 100.0), ("H100 SXM", 700.0, 280.0)]
)
def test_a_board_takes_no_cap_below_where_its_own_sweep_begins(name: str, max_w: float, lowest_w: float) -> None:
    assert unknown_gpu(name, "nvidia", max_w, 50.0).min_w == pytest.approx(lowest_w)
    assert unknown_gpu(name, "nvidia", max_w, 0.9 * max_w).min_w == 0.9 * max_w, "its own is higher"


def test_work_that_draws_half_is_slowed_by_half_the_cap_as_much() -> None:
    """Scaled by uncapped draw over limit: what counts is the cap over what the work would draw."""
    kind = unknown_gpu("V100", "nvidia", 250.0, 25.0)
    fleet = Fleet([PlantMachine(cpu_node().cpu, kind, 2)])
    load = busy(fleet, gpu=np.asarray([1.0, 0.5]))
    fleet.step(1.0, load)
    demand = fleet.gpus.demand_w / 250.0
    half_w = 0.8 * 250.0 * demand[1] / demand[0]
    assert kind.min_w < half_w < 0.55 * 0.8 * 250.0
    fleet.gpus.set_cap_w(0, 0.8 * 250.0)
    fleet.gpus.set_cap_w(1, half_w)
    settled(fleet, load)
    assert fleet.gpus.speed[1] == pytest.approx(fleet.gpus.speed[0])
    assert fleet.gpus.speed[0] == pytest.approx(1 / 1.0620)
