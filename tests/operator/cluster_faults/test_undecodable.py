"""Objects that make no sense cost themselves and nothing else: they are counted, and named in the log once."""

from __future__ import annotations

from typing import Any

import pytest

from joulie.cluster.memory.cluster import MemoryCluster
from joulie.cluster.port import NODE_HARDWARE, NODE_POWER_PROFILES, NODE_TWINS, NODES, PODS, ClusterError, Resource
from tests.operator.clusters import REAL, Body, Ground, MemoryGround, RealGround
from tests.operator.expected_objects import Expected, assert_as_planned
from tests.operator.harness import Play, Scene, play_out
from tests.operator.log_lines import Line, logged
from tests.operator.objects import node, pin, pod

NAMES = ["node-0", "node-1", "node-2", "node-3"]
AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.fixture(params=["memory", REAL])
def ground(request: pytest.FixtureRequest) -> Ground:
    if request.param == "memory":
        return MemoryGround()
    return RealGround(request.getfixturevalue("fresh_cluster"))


def _affine(name: str, operator: str, *values: str, on: str = "node-3") -> Body:
    expression = {"key": "joulie.io/power-profile", "operator": operator, "values": list(values)}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return pod(name, on, affinity={"nodeAffinity": {AFFINITY: required}})


# What no API server would take, but an older version, or another implementation, may have left.
BROKEN: list[tuple[Resource, Body]] = [
    (PODS, _affine("odd-operator", "Resembles", "eco")),
    (PODS, pod("odd-quantity", "node-3", cpu="many")),
    (NODE_HARDWARE, {"metadata": {"name": "node-2"}, "status": {"cpu": {"sockets": "two"}}}),
    (NODE_HARDWARE, {"metadata": {"name": "node-2"}, "status": {"cpu": {"totalCores": -1e300}}}),
    (NODE_POWER_PROFILES, pin("odd-profile", "node-3", "turbo")),
    (NODE_POWER_PROFILES, {**pin("odd-time", "node-3", "eco"), "spec": {"nodeName": "node-3", "expiresAt": "soon"}}),
    (NODE_POWER_PROFILES, {"metadata": {"name": "empty"}}),
    (NODE_TWINS, {"metadata": {"name": "node-1"}, "spec": {"nodeName": "node-1", "profile": "turbo"}}),
    (NODE_TWINS, {"metadata": {"name": "node-1"}, "spec": {"nodeName": "node-0", "profile": "eco"}}),
    (NODE_TWINS, {"metadata": {"name": "stray"}, "spec": {"nodeName": "node-1", "profile": "eco"}}),
    (NODES, {**node("odd-node"), "status": {"capacity": {"cpu": "-4"}}}),
]
BROKEN_IDS = [f"{number}-{body['metadata']['name']}" for number, (_, body) in enumerate(BROKEN)]


async def _nodes(scene: Scene) -> None:
    for name in NAMES:
        await scene.person.put(NODES, node(name))


def _named(lines: list[Line], body: Body) -> list[Line]:
    said = [line for line in lines if line.message == "object cannot be read; treated as absent"]
    return [line for line in said if line.fields["object"].endswith(body["metadata"]["name"])]


def _count(play: Play, kind: str) -> tuple[float | None, float | None]:
    value, labels = play.operator.metrics.made.registry.get_sample_value, {"kind": kind}
    return value("joulie_operator_broken_objects", labels), value("joulie_operator_broken_objects_seen_total", labels)


@pytest.mark.parametrize(("resource", "body"), BROKEN, ids=BROKEN_IDS)
def test_an_object_that_cannot_be_read_costs_itself_and_is_named_once(resource: Resource, body: Body) -> None:
    async def scenario(scene: Scene) -> None:
        await _nodes(scene)
        server = scene.person.cluster
        assert isinstance(server, MemoryCluster)
        server.put(resource, body, namespace="default")
        with logged() as log:
            async with scene.operator() as play:
                for _ in range(3):
                    outcome = await play.tick()
                    assert outcome is not None
                    assert outcome.failed == {}
                assert len(_named(log.lines, body)) == 1
                assert len(log.saying("decided")) == 3
                assert len(log.lines) == 4
                mended = resource is NODE_TWINS and body["metadata"]["name"] in NAMES  # the operator's own to mend
                assert _count(play, resource.kind) == (0 if mended else 1, 1)
                assert set(play.operator.state.twins) == set(NAMES)
                others = {"stray"} & {body["metadata"]["name"]}
                assert set(await scene.person.all(NODE_TWINS)) == set(NAMES) | others
                labels = {name: body["metadata"]["labels"] for name, body in (await scene.person.all(NODES)).items()}
                profiles = [labels[name].get("joulie.io/power-profile") for name in NAMES]
                assert profiles == ["performance", "performance", "eco", "eco"]

    play_out(MemoryGround(), scenario)


def test_a_twin_that_the_server_lets_no_client_repair_costs_its_node() -> None:
    async def scenario(scene: Scene) -> None:
        await _nodes(scene)
        server = scene.person.cluster
        assert isinstance(server, MemoryCluster)
        broken = {"metadata": {"name": "node-1"}, "status": {"predictedPowerHeadroomScore": "high"}}
        server.put(NODE_TWINS, broken)
        with logged() as log:
            async with scene.operator() as play:
                for _ in range(2):
                    outcome = await play.tick()
                    assert outcome is not None
                    assert list(outcome.failed) == ["node-1"]
                assert set(play.operator.state.twins) == {"node-0", "node-2", "node-3"}
                assert _count(play, "NodeTwin") == (1, 1)
        assert [line.message for line in log.besides("decided")] == ["object cannot be read; treated as absent"]

    play_out(MemoryGround(), scenario)


def test_it_is_named_again_only_after_it_was_whole_in_between() -> None:
    async def scenario(scene: Scene) -> None:
        await _nodes(scene)
        server = scene.person.cluster
        assert isinstance(server, MemoryCluster)
        broken = {"metadata": {"name": "node-2"}, "status": {"cpu": {"sockets": "two"}}}
        touched = {"metadata": {"name": "node-2", "labels": {"touched": "yes"}}, "status": broken["status"]}
        whole = {"metadata": {"name": "node-2"}, "status": {"cpu": {"sockets": 2}}}
        with logged() as log:
            async with scene.operator() as play:
                steps = ((broken, 1, 1), (touched, 1, 1), (whole, 1, 0), (broken, 2, 1))
                for number, (body, times_said, broken_now) in enumerate(steps):
                    server.put(NODE_HARDWARE, body)
                    server.put(NODE_HARDWARE, {"metadata": {"name": f"after-{number}"}})  # until this is known
                    await play.caught_up()
                    server.expire_watches()  # listing again is no reason to say it again
                    server.put(NODE_HARDWARE, {"metadata": {"name": f"listed-{number}"}})
                    await play.tick()
                    assert len(_named(log.lines, broken)) == times_said
                    assert _count(play, "NodeHardware") == (broken_now, times_said)
                await scene.person.remove(NODE_HARDWARE, "node-2")
                await play.tick()
                assert _count(play, "NodeHardware") == (0, 2)

    play_out(MemoryGround(), scenario)


# What a real API server takes, absurd as it is.
ABSURD: list[tuple[Resource, Body]] = [
    (PODS, _affine("nowhere", "In")),
    (PODS, _affine("both", "In", "eco", "performance")),
    (PODS, _affine("never", "NotIn", "eco", "performance")),
    (PODS, _affine("greater", "Gt", "7")),
    (PODS, pod("greedy", "node-3", cpu="9E")),
    (PODS, pod("not-on-a-node", "no-such-node", performance=True)),
    (NODE_HARDWARE, {"metadata": {"name": "no-such-node"}, "status": {"cpu": {"sockets": 2}}}),
    (NODE_HARDWARE, {"metadata": {"name": "node-2"}}),
    (
        NODE_HARDWARE,
        {
            "metadata": {"name": "node-2"},
            "status": {"cpu": {"capRange": {"minWattsPerSocket": 900, "maxWattsPerSocket": 0}, "model": "\u2603 9000"}},
        },
    ),
    (
        NODE_HARDWARE,
        {
            "metadata": {"name": "node-2"},
            "status": {"cpu": {"capRange": {"minWattsPerSocket": 500, "maxWattsPerSocket": 100}, "totalCores": 0}},
        },
    ),
    (
        NODE_HARDWARE,
        {"metadata": {"name": "node-2"}, "status": {"gpu": {"present": True, "count": 0, "model": "none"}}},
    ),
    (
        NODE_HARDWARE,
        {
            "metadata": {"name": "node-2"},
            "status": {"gpu": {"present": True, "count": 65536, "capRangePerGpu": {"maxWatts": -5}}},
        },
    ),
    (NODE_POWER_PROFILES, pin("long-gone", "node-3", "performance", 0.0)),
    (NODE_POWER_PROFILES, pin("nothing", "node-3", "eco", cpu={"packagePowerCapWatts": 0})),
    (NODE_POWER_PROFILES, pin("all", "node-3", "eco", cpu={"packagePowerCapWatts": 1000000})),
    (NODE_POWER_PROFILES, pin("elsewhere", "no-such-node", "eco")),
    (NODE_TWINS, {"metadata": {"name": "no-such-node"}, "spec": {"nodeName": "no-such-node"}}),
    (NODE_TWINS, {"metadata": {"name": "node-1"}, "spec": {"nodeName": "node-1"}}),
    (NODE_TWINS, {"metadata": {"name": "node-1"}, "status": {"lastUpdated": "2999-01-01T00:00:00Z"}}),
    (NODES, node("node-4", 0, **{"hw.cpu-sockets": "a-few", "hw.gpu-count": "1x", "draining": "perhaps"})),
]


def test_absurd_but_valid_objects_are_survived_and_planned_as_the_command_line_plans_them(ground: Ground) -> None:
    """Objects that speak of the same node come one after the other, the last one stays."""

    async def scenario(scene: Scene) -> None:
        await _nodes(scene)
        with logged() as log:
            async with scene.operator() as play:
                await play.tick()
                for resource, body in ABSURD:
                    await _put(scene, resource, body)
                    await play.tick()
                    outcome = await play.tick()
                    assert outcome is not None
                    assert outcome.failed == {}
                    await _assert_targets_as_planned(scene, play)
                assert [line for line in log.lines if line.level == "error"] == []
                warned = [line for line in log.lines if line.level == "warning"]
                assert len(warned) == len({str(line) for line in warned})  # each once
                for name in ("elsewhere", "node-4"):
                    assert log.about(name) != []

    play_out(ground, scenario)


async def _assert_targets_as_planned(scene: Scene, play: Play) -> None:
    expected = Expected(await scene.person.export(), play.env, play.now_s)
    twins, nodes = await scene.person.all(NODE_TWINS), await scene.person.all(NODES)
    assert set(twins) == set(expected.statuses)
    for name, planned in expected.nodes.items():
        cap_pct = planned["cpu"]["capPct"]
        spec = twins[name]["spec"]
        assert (spec["profile"], spec["cpu"].get("packagePowerCapPctOfMax")) == (planned["profile"], cap_pct), name
        assert nodes[name]["metadata"]["labels"]["joulie.io/power-profile"] == planned["profile"], name


async def _put(scene: Scene, resource: Resource, body: Body) -> None:
    name = body["metadata"]["name"]
    try:
        await scene.person.put(resource, body)
    except ClusterError as error:
        if error.status == 409:  # it is there already: then it is changed
            if "spec" in body:
                await scene.person.edit(resource, name, {"spec": body["spec"]})
            if "status" in body:
                await scene.person.edit(resource, name, {"status": body["status"]}, status=True)
        elif error.status != 422:  # the definition refuses it: all the better
            raise


def test_twins_with_fields_of_another_version_keep_them(ground: Ground) -> None:
    async def scenario(scene: Scene) -> None:
        await _nodes(scene)
        more: dict[str, Any] = {"futureField": {"of": "another version"}}
        body = {"metadata": {"name": "node-1"}, "spec": {"nodeName": "node-1", **more}, "status": more}
        await scene.person.put(NODE_TWINS, body)
        kept = (await scene.person.all(NODE_TWINS))["node-1"].get("spec", {})  # a definition may have cut them off
        async with scene.operator() as play:
            outcome = await play.tick()
            assert outcome is not None
            assert outcome.failed == {}
            spec = (await scene.person.all(NODE_TWINS))["node-1"]["spec"]
            assert spec.get("futureField") == kept.get("futureField")
            assert spec["profile"] == "performance"
            outcome = await play.tick()
            assert outcome is not None
            assert not outcome.writes

    play_out(ground, scenario)


def test_a_misnamed_twin_is_the_twin_of_no_node(ground: Ground) -> None:
    async def scenario(scene: Scene) -> None:
        await _nodes(scene)
        await scene.person.put(NODE_TWINS, {"metadata": {"name": "stray"}, "spec": {"nodeName": "node-0"}})
        await scene.person.put(NODE_TWINS, {"metadata": {"name": "node-1"}, "spec": {"nodeName": "node-0"}})
        with logged() as log:
            async with scene.operator() as play:
                await play.tick()
                await play.tick()  # what was there and could not be read has a generation that was not foreseen
                outcome = await play.tick()
                assert outcome is not None
                assert not outcome.writes
                for name in ("stray", "node-1"):
                    assert len(log.about(f"'object': '{name}'")) == 1
                await scene.person.remove(NODE_TWINS, "stray")
                expected = Expected(await scene.person.export(), play.env, play.now_s)
                await assert_as_planned(scene.person, expected)

    play_out(ground, scenario)
