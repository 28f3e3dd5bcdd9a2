"""The lower bound: below whatever the plant can be made to do, and not far below the best of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulie.errors import InputError
from joulie.lab.analysis.lower_bound import MAX_PROFILES, Bound, lower_bound
from joulie.lab.model.jobs import ANY_MODEL, JobTable
from joulie.lab.model.setup import ClusterSetup, PlantSetup, RunSetup
from joulie.plant.fleet import Fleet, FleetLoad
from joulie.plant.machines import PlantMachine
from joulie.plant.sleep import Sleep, SleepSettings
from joulie.plant.work import cpu_speed, felt_speed
from tests.lab.pods import PROFILE, table
from tests.plant.building import cpu_node, gpu_node, shares

KINDS = (cpu_node(), cpu_node("EPYC 9965", 1), gpu_node("H100 SXM", 4), gpu_node("A40", 2))


def bound_of(jobs: JobTable, machines: list[PlantMachine], setup: RunSetup | None = None, *speeds: float) -> Bound:
    core_speed, gpu_speed = (np.full(len(machines), speed) for speed in speeds or (1.0, 1.0))
    return lower_bound(setup or RunSetup(), machines, core_speed, gpu_speed, jobs)


# Machines, and pods with the node that each goes to and for how many steps.
@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[PlantMachine], list[tuple[int, int, dict[str, float]]]]:
    machines = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    pods = []
    for node, machine in enumerate(machines):
        cores, boards = machine.cpu.cores, machine.gpus
        feed = draw(shares)  # the plant has one for all boards of a node
        for _ in range(draw(st.integers(0, 3))):
            own_cores = float(draw(st.integers(1, max(1, int(cores) // 2))))
            own_boards = draw(st.integers(0, boards))
            if own_cores > cores or own_boards > boards:
                continue
            cores, boards = cores - own_cores, boards - own_boards
            pod = {"cores": own_cores, "gpus": float(own_boards)}
            pod |= {name: draw(st.one_of(st.just(1.0), shares)) for name in PROFILE} | {"feed_intensity": feed}
            pods.append((node, draw(st.integers(1, STEPS)), pod))
    return machines, pods


STEPS, STEP_S = 4, 40.0


@pytest.mark.slow
@given(
    clusters(),
    st.lists(st.tuples(shares, shares, st.floats(0.0, 100.0), st.floats(10.0, 70.0)), min_size=STEPS, max_size=STEPS),
    st.booleans(),
    st.tuples(st.floats(0.3, 2.0), st.floats(0.3, 2.0)),
    st.booleans(),
)
def test_whatever_caps_placements_and_weather_do_is_above_the_bound(
    cluster: tuple[list[PlantMachine], list[tuple[int, int, dict[str, float]]]],
    story: list[tuple[float, float, float, float]],
    sleep: bool,
    speeds: tuple[float, float],
    does_cpu_work: bool,
) -> None:
    """The work of each pod is what it got done, so that nothing but the plant decides."""
    machines, pods = cluster
    setup = RunSetup(cluster=ClusterSetup(cpu_work_on_gpu_nodes=True), plant=PlantSetup(sleep=sleep))
    sleeping = Sleep(len(machines), SleepSettings(setup.plant.sleep_w, setup.plant.wake_s, setup.plant.wake_energy_j))
    fleet = Fleet(machines, sleep=sleeping)
    for _, _, pod in pods:
        pod |= {"cpu_units": 0.0, "gpu_units": 0.0}
    for step, (cpu_cap, gpu_cap, throttle_pct, inlet_c) in enumerate(story):
        running = [(node, pod) for node, until, pod in pods if step < until]
        load, boards = _load(fleet, running)
        if sleep:
            busy_nodes = {node for node, _ in running}
            sleeping.sleep(np.asarray([node not in busy_nodes for node in range(len(machines))]))
        for bank, share in ((fleet.cpus, cpu_cap), (fleet.gpus, gpu_cap)):
            bank.set_cap_w(slice(None), bank.min_w + share * (bank.max_w - bank.min_w))
        fleet.cpus.set_throttle_pct(slice(None), throttle_pct)
        fleet.step(STEP_S, load, inlet_c)
        for (node, pod), held in zip(running, boards, strict=True):
            speed = cpu_speed(fleet.cpus.frequency[node], pod["memory_intensity"], pod["io_intensity"])  # type: ignore[arg-type]
            if does_cpu_work or not held:
                felt = felt_speed(speed, pod["cpu_sensitivity"])  # type: ignore[arg-type]
                pod["cpu_units"] += float(felt) * speeds[0] * pod["cores"] * STEP_S
            for board in held:
                felt = felt_speed(fleet.gpus.speed[board], pod["gpu_sensitivity"])  # type: ignore[arg-type]
                pod["gpu_units"] += float(felt) * speeds[1] * STEP_S
    bound = bound_of(table([pod for _, _, pod in pods]), machines, setup, *speeds)
    assert bound.it_energy_j <= float(fleet.node_energy_j.sum()) * (1 + 1e-9)
    assert bound.makespan_s <= fleet.elapsed_s * (1 + 1e-9)
    assert bound.dynamic_j >= 0
    assert bound.idle_j >= 0


def _load(fleet: Fleet, running: list[tuple[int, dict[str, float]]]) -> tuple[FleetLoad, list[list[int]]]:
    """What the fleet has to do, and the boards that each pod holds."""
    load, held = fleet.idle_load(), []
    free = [list(range(*fleet.gpu_start[node : node + 2])) for node in range(len(fleet))]
    for node, pod in running:
        load.cpu[node] += pod["cores"] * pod["cpu_utilisation"] / fleet.machines[node].cpu.cores
        load.feed_intensity[node] = pod["feed_intensity"]
        boards = [free[node].pop() for _ in range(int(pod["gpus"]))]
        load.gpu[boards] = pod["gpu_utilisation"]
        held.append(boards)
    np.minimum(load.cpu, 1.0, out=load.cpu)
    return load, held


def test_one_pod_on_one_node_against_a_calculation_by_hand() -> None:
    """16 cores for an hour at full utilisation, on a two-socket EPYC 9654 that cannot sleep.

    Packages of 720 W follow the curve 128 W (idle), 442 W (60 %), 817 W (100 %); above idle the node is most efficient
    at 60 %: 720 · (442 − 128) / 817 / 0.6 = 461.2 W for all 192 cores. Full frequency is best for work that feels all
    of a slowdown but for the rest of the node: (f^1.35 + 0.135) / f is least at f = (0.135 / 0.35)^(1 / 1.35) = 0.494.
    """
    bound = bound_of(table([{"cores": 16, "cpu_units": 16 * 3600, "cpu_utilisation": 1.0}]), [cpu_node()])
    assert bound.makespan_s == pytest.approx(3600)
    assert bound.idle_j == pytest.approx(720 * 128 / 817 * 1.135 * 3600)
    f = (0.135 / 0.35) ** (1 / 1.35)
    assert bound.dynamic_j == pytest.approx(461.2 / 192 * (f**1.35 + 0.135) / f * 16 * 3600, rel=1e-3)
    assert bound.it_energy_j == bound.idle_j + bound.dynamic_j


def test_with_sleep_a_pod_answers_for_the_idle_power_of_the_cores_that_it_holds() -> None:
    jobs = table([{"cores": 96, "cpu_units": 96 * 3600, "cpu_utilisation": 0.5, "cpu_sensitivity": 0.0}])
    awake, asleep = (
        bound_of(jobs, [cpu_node()] * 3, RunSetup(plant=PlantSetup(sleep=sleep))) for sleep in (False, True)
    )
    idle_w = 720 * 128 / 817 * 1.135
    assert asleep.idle_j == pytest.approx(3 * 12 * 3600)
    assert asleep.dynamic_j == pytest.approx(awake.dynamic_j + 0.5 * (idle_w - 12) * 3600)
    assert asleep.it_energy_j < awake.it_energy_j


def test_work_goes_where_it_is_cheapest_but_only_where_it_may() -> None:
    cheap, dear = gpu_node("H100 SXM", 1), gpu_node("A40", 1)
    pod = {"cores": 1.0, "gpus": 1.0, "gpu_units": 100.0, "gpu_utilisation": 1.0}
    models = ("A40",)
    anywhere, there = (table([pod | {"gpu_model": model}], models) for model in (ANY_MODEL, 0))
    speeds = np.ones(2), np.asarray([1.0, 0.1])
    free = lower_bound(RunSetup(), [cheap, dear], *speeds, anywhere)
    bound = lower_bound(RunSetup(), [cheap, dear], *speeds, there)
    assert free.makespan_s == pytest.approx(100)
    assert bound.makespan_s == pytest.approx(1000)
    assert bound.dynamic_j > free.dynamic_j


def test_cpu_work_keeps_off_nodes_with_boards_unless_it_may_go_there() -> None:
    jobs = table([{"cores": 8.0, "cpu_units": 800.0, "cpu_utilisation": 1.0}])
    with pytest.raises(InputError, match="job-0000000: fits on no node"):
        bound_of(jobs, [gpu_node()])
    allowed = RunSetup(cluster=ClusterSetup(cpu_work_on_gpu_nodes=True))
    assert bound_of(jobs, [gpu_node()], allowed).makespan_s == pytest.approx(100)


def test_a_gang_takes_as_long_as_its_slowest_pod() -> None:
    pods = [{"cores": 1.0, "cpu_units": units, "submit_s": 50.0} for units in (10.0, 300.0)]
    assert bound_of(table(pods, gang=True), [cpu_node()]).makespan_s == pytest.approx(300)


def test_work_that_comes_late_or_is_too_much_for_the_nodes_moves_the_end() -> None:
    node = cpu_node()  # 192 cores
    much = [{"cores": 192.0, "cpu_units": 192 * 100.0} for _ in range(5)]
    assert bound_of(table(much), [node]).makespan_s == pytest.approx(500)
    late = [*much[:2], *({**pod, "submit_s": 1000.0} for pod in much[2:])]
    bound = bound_of(table(late), [node])
    assert bound.makespan_s == pytest.approx(1300)
    later = [{**pod, "submit_s": pod.get("submit_s", 0.0) + 100.0} for pod in late]
    shifted = bound_of(table(later), [node])
    assert shifted.makespan_s == pytest.approx(bound.makespan_s)
    assert shifted.idle_j == pytest.approx(bound.idle_j * 1400 / 1300)  # nodes draw from the beginning of the run


def test_no_jobs_need_nothing() -> None:
    assert bound_of(table([]), [cpu_node()]) == Bound(0.0, 0.0, 0.0, 0.0)


@settings(max_examples=25)
@given(st.lists(st.tuples(*[shares] * 7), min_size=4, max_size=30))
def test_rounding_profiles_more_coarsely_only_lowers_the_bound(profiles: list[tuple[float, ...]]) -> None:
    """With very many different profiles they are rounded; a bound it stays."""
    usual = {"cores": 4.0, "gpus": 1.0, "cpu_units": 1e3, "gpu_units": 1e3}
    jobs = table([usual | dict(zip(PROFILE, profile, strict=True)) for profile in profiles])
    fine_j = bound_of(jobs, [KINDS[2]]).dynamic_j
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("joulie.lab.analysis.lower_bound.MAX_PROFILES", 1)
        coarse_j = bound_of(jobs, [KINDS[2]]).dynamic_j
    assert coarse_j <= fine_j * (1 + 1e-9)


def test_with_very_many_different_profiles_the_bound_is_only_a_little_lower() -> None:
    rng = np.random.default_rng(1)
    usual = {"cores": 4.0, "gpus": 1.0, "cpu_units": 1e3, "gpu_units": 1e3}
    jobs = table([usual | dict(zip(PROFILE, rng.random(7).tolist(), strict=True)) for _ in range(MAX_PROFILES + 1000)])
    fine_j = bound_of(jobs, [KINDS[2]]).dynamic_j
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("joulie.lab.analysis.lower_bound.MAX_PROFILES", 2 * MAX_PROFILES)
        finer_j = bound_of(jobs, [KINDS[2]]).dynamic_j
    assert 0.95 * finer_j < fine_j < finer_j
