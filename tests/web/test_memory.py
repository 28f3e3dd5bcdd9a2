"""History and changes: the last hour, bounded, and told as people would tell it."""

from __future__ import annotations

from msgspec.structs import replace

from joulie.model.snapshot import Pin
from joulie.overview.findings import FindingThresholds
from joulie.overview.summary import Facts
from joulie.settings import DecisionSettings, load
from joulie.web.changes import KEPT_S, LASTING_S, MOST, Change, ChangeLog
from joulie.web.history import SAMPLE_S, SAMPLES, History
from joulie.web.scene import Scene
from tests.web.world import World

NOW_S = 1_793_534_400.0


class Looking:
    """A viewer that looks at a world again and again."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.scene = Scene(load(DecisionSettings, {}).plan, FindingThresholds())
        self.history, self.log = History(), ChangeLog()
        self.look()

    def look(self, facts: Facts | None = None) -> list[Change]:
        world, scene = self.world, self.scene
        scene.look(world.read(), facts or world.facts(), world.now_s)
        if self.history.is_due(world.now_s):
            self.history.take(scene.cluster, scene.views, scene.names)
        return self.log.compare(scene.views, scene.pins, scene.cluster, lambda node: f"why {node}")


def test_history_holds_an_hour_and_no_more() -> None:
    looking = Looking(World(5, NOW_S))
    for _ in range(SAMPLES + 50):
        looking.world.step(SAMPLE_S)
        looking.look()
    past = looking.history.of_node("node-02")
    assert len(past["timesS"]) == len(past["powerW"]) == SAMPLES
    assert past["timesS"] == sorted(past["timesS"])
    assert past["timesS"][-1] - past["timesS"][0] == (SAMPLES - 1) * SAMPLE_S
    assert past["powerW"][-1] == round(looking.scene.views["node-02"].power_w or 0, 1)
    assert looking.history.of_node("nobody")["powerW"] == []


def test_nodes_keep_their_past_when_others_come_and_go() -> None:
    looking = Looking(World(5, NOW_S))
    before = looking.history.of_node("node-03")["powerW"]
    looking.world.add_node("aaa", "rack-0")
    del looking.world.nodes["node-01"], looking.world.twins["node-01"]
    looking.world.step(SAMPLE_S)
    looking.look()
    assert looking.history.of_node("node-03")["powerW"][:1] == before
    assert looking.history.of_node("aaa")["powerW"][0] is None
    assert looking.history.of_node("node-01")["powerW"] == []


def test_a_clock_that_was_set_back_starts_the_history_anew() -> None:
    looking = Looking(World(2, NOW_S))
    looking.world.step(SAMPLE_S)
    looking.look()
    looking.world.step(-3600)
    looking.look()
    assert looking.history.of_cluster()["timesS"] == [looking.world.now_s]


def test_changes_of_state_pins_attention_and_leader_are_told() -> None:
    looking = Looking(World(10, NOW_S))
    world = looking.world
    assert looking.look() == []
    world.turn("node-02", "draining")
    world.pins["p"] = Pin("p", "node-04", "eco")
    world.blocked.add("node-07")
    world.write_twin("node-07", 7)
    told = looking.look()
    world.step(LASTING_S, share=0.0)
    told += looking.look(replace(world.facts(), leader="operator-2"))
    assert [(one.kind, one.node) for one in told] == [
        ("state", "node-02"),
        ("pin", "node-04"),
        ("attention", "node-07"),
        ("leader", ""),
    ]
    assert (told[0].before, told[0].after, told[0].text) == ("eco", "draining", "why node-02")
    world.pins.clear()
    world.blocked.clear()
    world.write_twin("node-07", 7)
    ended = looking.look(replace(world.facts(), leader="operator-2"))
    assert ended[0].text == "no longer pinned to eco"
    assert ended[1].good is True
    assert looking.log.lines(2) == ended[::-1]


def test_first_contact_with_a_node_is_no_change_of_state() -> None:
    looking = Looking(World(3, NOW_S))
    twin = looking.world.twins.pop("node-01")
    looking.look()
    looking.world.twins["node-01"] = twin
    assert looking.look() == []


def test_what_grows_older_is_not_news() -> None:
    looking = Looking(World(3, NOW_S))
    looking.world.silent["node-01"] = NOW_S - 900
    looking.world.write_twin("node-01", 1)
    assert looking.look() == []
    looking.world.step(LASTING_S)
    assert len(looking.look()) == 1
    looking.world.step(300)
    assert looking.look() == []


def test_what_needed_attention_for_a_moment_is_no_news() -> None:
    looking = Looking(World(3, NOW_S))
    looking.world.blocked.add("node-02")
    looking.world.write_twin("node-02", 2)
    assert looking.look() == []
    looking.world.blocked.clear()
    looking.world.write_twin("node-02", 2)
    assert looking.look() == []


def test_a_thousand_nodes_that_do_the_same_are_one_line() -> None:
    looking = Looking(World(1_000, NOW_S, pods_per_node=0))
    for number, name in enumerate(looking.world.nodes):
        if looking.world.state[name] == "eco":
            looking.world.state[name] = "performance"
            looking.world.write_twin(name, number)
    told = [one for one in looking.look() if one.kind == "state"]
    assert len(told) == 1
    assert told[0].text.startswith("500 nodes: ")
    assert (told[0].before, told[0].after) == ("eco", "performance")


def test_changes_are_kept_for_an_hour_and_never_more_than_a_page_can_bear() -> None:
    looking = Looking(World(3, NOW_S))
    for number in range(MOST + 100):
        looking.world.turn("node-01", ("eco", "performance")[number % 2])
        looking.look()
    assert len(looking.log.lines(10_000)) == MOST
    looking.world.step(KEPT_S + 1)
    looking.look()
    assert [one for one in looking.log.lines(10_000) if one.kind == "state"] == []
