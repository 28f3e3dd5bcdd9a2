"""A board that events change in place scores exactly as one that is built anew from what the events left behind."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.control.placement.board import ScoreBoard
from joulie.control.placement.score_table import score_pod, score_table, table_of
from joulie.control.scoring import score
from joulie.model.api import NodeHardware, NodeTwin, NodeTwinStatus
from joulie.model.rfc3339 import format_time
from joulie.model.snapshot import Node, Pod, Snapshot
from joulie.settings import ExtenderSettings, load
from tests.support import random_clusters as strategies
from tests.support.small_clusters import CATALOGUE, NOW, fresh_twin, hardware, node, pod, twin

NAMES = ["a", "b", "n1", "n10", "z"]
ENVIRONMENTS = [
    {},
    {"EXTENDER_COUNT_RECENT_PODS": "false"},
    {"TWIN_STALENESS_THRESHOLD": "90s", "POWER_PROFILE_LABEL": "amd.com/gpu.product"},
    {"TWIN_STALENESS_THRESHOLD": "100ms"},  # not a whole number of the clock's smallest steps
]
ASKING = [
    pod("nothing"),
    pod("usual", cores=7.3, gpus=1),
    pod("demanding", cores=1e9, gpus=64, wants="performance"),
]

Event = tuple[str, Any]


class World:
    """A board that lives through events, and beside it what the events leave behind as plain dictionaries."""

    def __init__(self, env: dict[str, str] | None = None) -> None:
        self.settings = load(ExtenderSettings, env or {})
        self.board = ScoreBoard(self.settings.score, self.settings.marginal, self.settings.hardware, CATALOGUE)
        self.freed: list[tuple[str, int]] = []
        self.board.on_freed = lambda name, row: self.freed.append((name, row))
        self.nodes: dict[str, Node] = {}
        self.twins: dict[str, NodeTwin] = {}
        self.told: dict[str, NodeHardware] = {}
        self.pods: dict[str, Pod] = {}
        self.now_s = NOW

    def node(self, name: str, found: Node | None) -> None:
        self.board.put_node(name, found)
        _keep(self.nodes, name, found)

    def hardware(self, name: str, found: NodeHardware | None) -> None:
        self.board.put_hardware(name, found)
        _keep(self.told, name, found)

    def twin(self, name: str, found: NodeTwin | None) -> None:
        self.board.put_twin(name, None if found is None else found.status or NodeTwinStatus())
        _keep(self.twins, name, found)

    def pod(self, key: str, found: Pod | None) -> None:
        self.board.put_pod(key, self.pods.get(key), found)
        _keep(self.pods, key, found)

    def time(self, now_s: float) -> None:
        self.now_s = now_s

    def do(self, events: Sequence[Event]) -> None:
        for what, (key, value) in events:
            act: Callable[..., None] = getattr(self, what)
            act(value) if what == "time" else act(key, value)

    def check(self) -> None:
        """Bit by bit, terms and reasons included."""
        snapshot = Snapshot(dict(self.nodes), tuple(self.pods.values()), dict(self.told), dict(self.twins))
        parts = self.settings
        anew = score_table(snapshot, parts.score, parts.marginal, parts.hardware, CATALOGUE, self.now_s)
        lived = table_of(self.board, self.now_s)
        assert lived.prepared.cluster.performance_pressure.hex() == anew.prepared.cluster.performance_pressure.hex()
        assert lived.prepared.cluster.trend_w_per_min.hex() == anew.prepared.cluster.trend_w_per_min.hex()
        assert set(self.board.index) == self.nodes.keys() | self.twins.keys()
        for asking in ASKING:
            ours, theirs = score_pod(lived, asking), score_pod(anew, asking)
            assert list(map(repr, ours)) == list(map(repr, theirs))
            assert all(math.isfinite(scored.score) for scored in ours)
            raw = score(lived.prepared, asking.cpu_cores, asking.gpus, asking.workload_class).score
            expected = score(anew.prepared, asking.cpu_cores, asking.gpus, asking.workload_class).score
            for row, name in enumerate(anew.rows):  # twins without a node too
                assert raw[self.board.index[name]].tobytes() == expected[row].tobytes()


def _keep(objects: dict[str, Any], key: str, found: Any) -> None:
    if found is None:
        objects.pop(key, None)
    else:
        objects[key] = found


def _of(what: str, made: Callable[[str], st.SearchStrategy[Any]]) -> st.SearchStrategy[Event]:
    """Something happens to one of a few names: it is there, different, or gone."""
    one = st.sampled_from(NAMES).flatmap(lambda name: st.tuples(st.just(name), st.none() | made(name)))
    return st.tuples(st.just(what), one)


# Extremes that the API's ranges allow, beside what is plausible.
_EXTREME = st.builds(
    lambda name, measured, capped, trend: twin(
        name,
        status={
            "schedulableClass": "performance",
            "lastUpdated": format_time(NOW),
            "powerMeasurement": {
                "measuredNodePowerW": measured,
                "nodeCappedPowerW": capped,
                "powerTrendWPerMin": trend,
            },
        },
    ),
    st.sampled_from(NAMES),
    st.sampled_from([0.0, 5e-324, 1.3e10]),
    st.sampled_from([5e-324, 1e-300, 1e-12, 1e-11, 1.3e10]),
    st.sampled_from([1.7e308, -1.7e308, 5e-324, 0.0]),
)
_CLOCK = st.sampled_from([NOW - 400, NOW - 1, NOW, NOW + 0.1, NOW + 60, NOW + 299.9999998, NOW + 300, NOW + 301])
events = st.one_of(
    _of("node", strategies.nodes),
    _of("hardware", strategies.hardware_of),
    _of("twin", strategies.twins),
    _of("twin", strategies.twins),
    st.tuples(st.just("twin"), _EXTREME.map(lambda found: (found.node, found))),
    st.tuples(
        st.just("pod"),
        st.tuples(
            st.sampled_from(["ns/p1", "ns/p2", "ns/p3", "ns/p4"]),
            st.none() | strategies.pods(st.sampled_from([*NAMES, ""])),
        ),
    ),
    st.tuples(st.just("time"), st.tuples(st.none(), _CLOCK | st.floats(NOW - 1000, NOW + 1000))),
)


@given(st.sampled_from(ENVIRONMENTS), st.lists(st.lists(events, max_size=6), max_size=8))
def test_any_sequence_of_events_scores_as_a_board_built_anew(env: dict[str, str], steps: list[list[Event]]) -> None:
    world = World(env)
    for step in steps:
        world.do(step)
        world.check()


@pytest.mark.parametrize("env", ENVIRONMENTS, ids=["default", "not recent", "other label", "fleeting"])
def test_thousands_of_events_on_hundreds_of_nodes_score_as_a_board_built_anew(env: dict[str, str]) -> None:
    rng = np.random.default_rng(7)
    world = World(env)
    for round_ in range(12):
        for _ in range(400):
            number = int(rng.integers(0, 300))
            name = f"n{number}"
            gone = rng.random() < 0.4
            kind = int(rng.integers(0, 5))
            if kind == 0:
                labels = {"joulie.io/power-profile": str(rng.choice(["eco", "performance", "odd"]))}
                world.node(name, None if gone else node(name, labels, cores=float(rng.integers(0, 200))))
            elif kind == 1:
                power = {
                    "measuredNodePowerW": float(rng.uniform(0, 900)),
                    "powerTrendWPerMin": float(rng.normal(0, 50)),
                }
                state = str(rng.choice(["performance", "eco", "draining", ""]))
                age_s = float(rng.integers(0, 200))
                world.twin(name, None if gone else fresh_twin(name, state, age_s=age_s, power=power))
            elif kind == 2:
                world.hardware(name, None if gone else hardware(name, {"sockets": int(rng.integers(0, 4))}))
            else:
                at_s = NOW - float(rng.integers(0, 300))
                bound = pod(f"p{number}", f"n{rng.integers(0, 300)}", cores=3.0, gpus=1, scheduled_at_s=at_s)
                world.pod(f"ns/p{rng.integers(0, 500)}", None if gone else bound)
        world.time(NOW + float(rng.integers(-300, 300)) + round_)
        world.check()
    assert len(world.freed) > 100


class TestRows:
    def test_a_row_is_used_again_and_nothing_of_its_last_owner_remains(self) -> None:
        world = World()
        world.hardware("a", hardware("a", {"sockets": 2, "capRange": {"maxWattsPerSocket": 900}}))
        world.node("a", node("a", {"joulie.io/power-profile": "eco"}, nvidia=8))
        world.twin("a", fresh_twin("a", "eco", power={"powerTrendWPerMin": 900}))
        world.pod("ns/p", pod("p", "a", cores=50, scheduled_at_s=NOW))
        world.check()
        row = world.board.index["a"]
        world.node("a", None)
        world.check()  # the twin still counts in pressure and trend
        world.twin("a", None)
        assert world.freed == [("a", row)]
        world.node("b", node("b", cores=0))
        assert world.board.index == {"b": row}
        world.check()
        assert world.board.columns.recent_w[row] == 0
        assert not world.board.columns.fresh[row]

    def test_pods_and_hardware_wait_for_a_node_that_comes_later_and_for_one_that_comes_back(self) -> None:
        world = World()
        world.pod("ns/p", pod("p", "a", cores=50, scheduled_at_s=NOW))
        world.hardware("a", hardware("a", {"sockets": 2, "capRange": {"maxWattsPerSocket": 100}}))
        for _ in range(2):
            world.node("a", node("a"))
            world.twin("a", fresh_twin("a"))
            world.check()
            assert world.board.columns.recent_w[world.board.index["a"]] == pytest.approx(0.7 * 0.5 * 200)
            world.node("a", None)
            world.twin("a", None)
            world.check()

    def test_thousands_of_rows_grow_without_a_change_to_those_before(self) -> None:
        world = World()
        for number in range(200):
            world.node(f"n{number}", node(f"n{number}", cores=number))
            world.twin(f"n{number}", fresh_twin(f"n{number}", power={"measuredNodePowerW": number}))
            if number % 40 == 0:
                world.check()
        world.check()

    def test_what_is_not_there_can_go_and_leaves_nothing(self) -> None:
        world = World()
        world.node("a", None)
        world.twin("a", None)
        world.hardware("a", None)
        world.pod("ns/a", None)
        assert (world.board.index, world.board.names, world.freed) == ({}, [], [])
        world.check()


class TestClock:
    def world(self) -> World:
        world = World()
        for name, age_s in (("young", 10), ("old", 200)):
            world.node(name, node(name))
            world.twin(name, fresh_twin(name, age_s=age_s))
        return world

    def test_twins_grow_stale_by_the_clock_alone_and_only_then_is_anything_computed_again(self) -> None:
        world = self.world()
        first = world.board.prepared(NOW)
        assert world.board.prepared(NOW + 100) is first
        for now_s, stale in ((NOW + 100.001, {"old"}), (NOW + 290, {"old"}), (NOW + 290.001, {"old", "young"})):
            world.time(now_s)
            world.check()
            fresh = world.board.columns.fresh
            assert {name for name, row in world.board.index.items() if not fresh[row]} == stale

    def test_a_clock_that_goes_back_makes_them_fresh_again(self) -> None:
        world = self.world()
        for now_s in (NOW + 1000, NOW, NOW + 150, NOW - 5000, NOW + 150, NOW + 150):
            world.time(now_s)
            world.check()

    @given(st.floats(NOW - 2, NOW + 2), st.floats(0.001, 400), st.integers(-3, 3))
    def test_no_rounding_tells_a_board_that_waited_from_a_new_one(self, at_s: float, old_s: float, ulps: int) -> None:
        settings_ = load(ExtenderSettings, {"TWIN_STALENESS_THRESHOLD": f"{old_s:.6f}s"})
        boards = [
            ScoreBoard(settings_.score, settings_.marginal, settings_.hardware, CATALOGUE, rows=1) for _ in range(2)
        ]
        for board in boards:
            board.put_twin("a", fresh_twin("a").status)
            board.updated_s[0] = at_s
        later_s = at_s + old_s
        for _ in range(abs(ulps)):
            later_s = math.nextafter(later_s, math.inf if ulps > 0 else -math.inf)
        boards[0].prepared(at_s)
        for board in boards:
            board.prepared(later_s)
        assert boards[0].columns.fresh[0] == boards[1].columns.fresh[0]


class TestNumbersThatTheApiAllows:
    def test_a_budget_too_small_to_divide_by_says_nothing(self) -> None:
        world = World()
        world.node("a", node("a"))
        status = {
            "lastUpdated": format_time(NOW),
            "predictedPowerHeadroomScore": 40,
            "powerMeasurement": {"measuredNodePowerW": 5, "nodeCappedPowerW": 5e-324},
        }
        world.twin("a", twin("a", status=status))
        world.check()
        (scored,) = score_pod(table_of(world.board, NOW), pod("x"))
        assert scored.score == pytest.approx(0.7 * 40 + 15)

    def test_trends_of_any_size_can_be_added_up(self) -> None:
        world = World()
        for name in ("a", "b", "c"):
            world.node(name, node(name))
            world.twin(name, fresh_twin(name, power={"powerTrendWPerMin": 1.7e308}))
        world.check()
        scores = score_pod(table_of(world.board, NOW), pod("x"))
        assert {scored.breakdown["trendBonus"] for scored in scores if scored.breakdown} == {-25.0}
