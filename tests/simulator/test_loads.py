from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.errors import InputError
from joulie.settings import SimulatorSettings, load
from joulie.simulator.load_file import parse_load_file
from joulie.simulator.loads import load_of
from joulie.simulator.simulation import Simulation
from tests.simulator.grounds import Clock, node, pod, simulation

pods = st.lists(
    st.builds(
        pod,
        st.text("abc", min_size=1, max_size=4),
        st.just("n"),
        st.floats(0, 500),
        st.floats(0, 20),
        performance=st.booleans(),
        finished=st.booleans(),
    ),
    max_size=8,
)


@given(pods, st.floats(0, 400), st.integers(0, 8), st.integers(0, 5))
def test_whatever_pods_ask_for_a_load_is_a_load(some: list, cores: float, boards: int, seed: int) -> None:  # type: ignore[type-arg]
    made = load_of(some, cores, boards, seed)
    assert len(made.gpus) <= boards
    for value in (made.cpu, made.memory_intensity, made.io_intensity, made.feed_intensity, *made.gpus):
        assert 0 <= value <= 1
    assert made == load_of(list(reversed(some)), cores, boards, seed) or len({p.name for p in some}) < len(some)


def test_a_performance_pod_uses_more_of_what_it_asked_for() -> None:
    for seed in range(20):
        demanding = load_of([pod("a", "n", 64, 1, performance=True)], 192, 4, seed)
        standard = load_of([pod("a", "n", 64, 1)], 192, 4, seed)
        assert demanding.cpu >= standard.cpu
        assert demanding.gpus[0] >= standard.gpus[0]


def test_load_follows_the_pods_that_are_bound_and_not_finished() -> None:
    world = simulation(node("n", 4))

    def watts() -> float:
        for _ in range(10):
            world.step(1.0)
        return float(world.fleet.node_w[0])

    idle_w = watts()
    world.put_pod("team/a", pod("a", "n", 96, 2))
    busy_w = watts()
    assert busy_w > idle_w + 500
    world.put_pod("team/b", pod("b", "elsewhere", 96, 2))
    world.put_pod("team/c", pod("c", "", 96, 2))  # not bound yet
    assert watts() == pytest.approx(busy_w)
    world.put_pod("team/a", pod("a", "n", 96, 2, finished=True))
    assert watts() == pytest.approx(idle_w)
    world.put_pod("team/a", pod("a", "n", 96, 2))
    assert watts() == pytest.approx(busy_w)
    world.drop_pod("team/a")
    assert watts() == pytest.approx(idle_w)


def _noisy(seed: str, names: list[str]) -> Simulation:
    world = simulation(*(node(name, 2) for name in names), SIM_NOISE_PCT="10", SIM_SEED=seed)
    for name in names:
        world.put_pod(f"team/{name}", pod(name, name, 96, 1))
    return world


def test_the_same_seed_gives_the_same_load_beside_any_other_node_and_another_seed_another() -> None:
    one, again, other = _noisy("7", ["a", "b", "c"]), _noisy("7", ["c", "a"]), _noisy("8", ["a", "b", "c"])
    for world in (one, again, other):
        for _ in range(30):
            world.step(1.0)
    assert one.fleet.node_energy_j[one.index["a"]] == again.fleet.node_energy_j[again.index["a"]]
    assert one.fleet.node_energy_j[one.index["a"]] != other.fleet.node_energy_j[other.index["a"]]


def test_noise_wavers_around_the_load_and_stays_within_its_share() -> None:
    world = _noisy("1", ["a"])
    seen = []
    for _ in range(300):
        world.step(1.0)
        seen.append(float(world.load.cpu[0]))
    steady = world.load_of("a").cpu
    assert max(seen) <= steady * 1.1 + 1e-9
    assert min(seen) >= steady * 0.9 - 1e-9
    assert np.mean(seen) == pytest.approx(steady, rel=0.02)
    assert np.std(seen) > 0.02 * steady


LOAD_FILE = """\
# a comment
time_s,node,cpu,gpu
0,*,0.2,0
10,n,0.9,1   # busy
20,n,,
"""


def test_a_load_file_is_played_and_wins_over_the_pods() -> None:
    timeline = parse_load_file(LOAD_FILE, "load.csv")
    world = Simulation(load(SimulatorSettings, {"SIM_NOISE_PCT": "0"}), timeline=timeline, clock=Clock())
    world.put_node(node("n", 2))
    world.put_node(node("m", 2))
    world.put_pod("team/a", pod("a", "n", 192, 1, performance=True))
    pods_make = load_of([pod("a", "n", 192, 1, performance=True)], 192, 2, 1)
    seen = {}
    for second in range(30):
        world.step(1.0)
        seen[second] = (float(world.load.cpu[world.index["n"]]), float(world.load.cpu[world.index["m"]]))
    assert seen[5] == (0.2, 0.2)
    assert seen[15] == (0.9, 0.2)
    assert seen[25][0] == pytest.approx(pods_make.cpu)
    assert seen[25][1] == 0.2
    assert world.load.gpu[world.fleet.boards_of(world.index["n"])].tolist() == [pods_make.gpus[0], 0.0]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "load.csv: holds no header"),
        ("a,b\n", "load.csv:1: the header must be time_s,node,cpu,gpu"),
        ("time_s,node,cpu,gpu,x\n", "load.csv:1: the header"),
        ("time_s,node,cpu,gpu\n1,n,0.5\n", "load.csv:2: 3 fields, but the header names 4"),
        ("time_s,node,cpu,gpu\n1,n,1.5,0\n", "load.csv:2: cpu: 1.5 is not from 0 to 1"),
        ("time_s,node,cpu,gpu\n1,n,nan,0\n", "load.csv:2: cpu: 'nan' is not a number"),
        ("time_s,node,cpu,gpu\nsoon,n,1,0\n", "load.csv:2: time_s: 'soon' is not a number"),
        ("time_s,node,cpu,gpu\n-1,n,1,0\n", "load.csv:2: time_s: -1 is before the start"),
        ("time_s,node,cpu,gpu\n1,,1,0\n", "load.csv:2: node: missing"),
    ],
)
def test_a_wrong_load_file_is_refused_with_line_and_field(text: str, named: str) -> None:
    with pytest.raises(InputError) as error:
        parse_load_file(text, "load.csv")
    assert named in str(error.value)
    assert "\n" not in str(error.value)
