"""What alerts and dashboards rest on: the twin's numbers by node and rack, when agents last spoke, and missing caps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from joulie.cluster.port import NODE_TWINS, NODES
from joulie.model.rfc3339 import format_time
from joulie.simulator.faults import Fault
from tests.agent import world as machines
from tests.operator.clusters import MemoryGround
from tests.operator.harness import Play, Scene, play_out
from tests.operator.objects import node
from tests.support.small_clusters import NOW

_SERIES = re.compile(r"^(joulie_\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)


def series(play: Play) -> dict[tuple[str, str], float]:
    page = play.operator.metrics.page().decode()
    return {(name, labels): float(value) for name, labels, value in _SERIES.findall(page)}


def test_the_leader_shows_what_it_last_predicted_of_each_node_and_its_rack() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.person.put(NODES, node("a", rack="r1"))
        await scene.person.put(NODES, node("b"))
        async with scene.operator({"STATIC_HP_FRAC": "0.5", "POWER_BUDGET_WATTS": "1200"}) as play:
            await play.tick()
            await play.tick()
            found = series(play)
            status = {name: (await scene.person.all(NODE_TWINS))[name]["status"] for name in "ab"}
            for name, rack in (("a", "r1"), ("b", "")):
                labels, power = f'node="{name}",rack="{rack}"', status[name]["powerMeasurement"]
                for metric, value in {
                    "power_watts": power["measuredNodePowerW"],
                    "capped_power_watts": power["nodeCappedPowerW"],
                    "headroom_score": status[name]["predictedPowerHeadroomScore"],
                    "cooling_stress_score": status[name]["predictedCoolingStressScore"],
                    "psu_stress_score": status[name]["predictedPsuStressScore"],
                }.items():
                    assert found[f"joulie_operator_node_{metric}", labels] == pytest.approx(value, rel=1e-6), metric
            assert found["joulie_operator_power_budget_watts", ""] == 1200
            assert ("joulie_operator_estimated_pue", "") not in found
            play.lead_s = 0.0
            assert not [name for name, labels in series(play) if "node=" in labels]

    play_out(MemoryGround(), scenario)


def test_the_leader_shows_when_an_agent_last_spoke_also_while_it_does_not_decide() -> None:
    async def scenario(scene: Scene) -> None:
        for name in ("spoke", "mute", "odd"):
            await scene.person.put(NODES, node(name))
        async with scene.operator() as play:
            await play.tick()
            assert reports(play) == {"spoke": 0, "mute": 0, "odd": 0}
            for name, when in (("spoke", format_time(NOW - 60)), ("odd", "yesterday")):
                said = {"controlStatus": {"cpu": {"result": "applied", "updatedAt": when}}}
                await scene.person.edit(NODE_TWINS, name, {"status": said}, status=True)
            await play.caught_up()
            assert reports(play) == {"spoke": int(NOW - 60), "mute": 0, "odd": 0}

    play_out(MemoryGround(), scenario)


def reports(play: Play) -> dict[str, float]:
    metric, found = "joulie_operator_agent_report_timestamp_seconds", series(play)
    return {name: found[metric, f'node="{name}"'] for name in ("spoke", "mute", "odd")}


@pytest.mark.parametrize(("simulate_only", "missing"), [("false", 1), ("true", 0)])
def test_a_cap_is_missing_where_one_is_asked_for_and_cannot_be_had(
    simulate_only: str, missing: int, tmp_path: Path
) -> None:
    async def play() -> None:
        async with machines.world(
            tmp_path, machines.node("held"), machines.node("gone"), machines.node("free")
        ) as around:
            for name in ("gone", "free"):
                around.simulation.faults.put(name, Fault("gone", "503"), around.simulation.clock())
            for name, cpu_pct in (("held", 60), ("gone", 60), ("free", 100)):
                machines.put_twin(around.server, machines.twin(name, cpu_pct))
            async with machines.agent(around.server, around.env(SIMULATE_ONLY=simulate_only)) as running:
                all_nodes = ("held", "gone", "free")
                await machines.until(lambda: all(around.control(name) for name in all_nodes), "all have reported")
                capped = [("joulie_agent_cap_missing", f'node="{n}",device="cpu"') for n in ("held", "gone")]
                found = await running.metrics(*capped)
                assert [found[key] for key in capped] == [0, missing]
                # Where everything is allowed nothing is missing, and no series says so.
                assert len([name for name, _ in found if name == "joulie_agent_cap_missing"]) == 2

    machines.scenario(play())
