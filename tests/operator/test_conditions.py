"""Conditions of twins, pins and TelemetryProfiles, as the operator and an agent write them, in memory and for real."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from joulie.agent.outcome import CapOutcome
from joulie.agent.reporting.status import enforced_condition, results_of, twin_write
from joulie.cluster.patches import apply_status
from joulie.cluster.port import NODE_POWER_PROFILES, NODE_TWINS, NODES, PODS, TELEMETRY_PROFILES, Resource
from joulie.model.names import AGENT_MANAGER
from tests.operator.clusters import REAL, Body, Ground, MemoryGround, Person, RealGround
from tests.operator.harness import Scene, play_out
from tests.operator.objects import node, pin, pod

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

APPLIED, LOCKED = CapOutcome("applied", "rapl", "240 W"), CapOutcome("blocked", "rapl", "locked by the BIOS")
NONE = CapOutcome("none")


@pytest.fixture(params=["memory", REAL])
def ground(request: pytest.FixtureRequest) -> Ground:
    if request.param == "memory":
        return MemoryGround()
    return RealGround(request.getfixturevalue("fresh_cluster"))


class Agent:
    """Writes reports exactly as an agent does."""

    def __init__(self, ground: Ground, person: Person) -> None:
        self.cluster = ground.client(manager=AGENT_MANAGER)
        self._person = person

    async def __aenter__(self) -> Agent:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cluster.close()

    async def report(self, name: str, cpu: CapOutcome, now_s: float, gpu: CapOutcome = NONE) -> None:
        twin = (await self._person.all(NODE_TWINS))[name]
        results = results_of(cpu, gpu, twin["metadata"]["generation"])
        write = twin_write(name, results, enforced_condition(results, None, now_s), now_s)
        await apply_status(self.cluster, NODE_TWINS, name, write.body["status"], owned=write.owned)


async def conditions(person: Person, resource: Resource, name: str) -> dict[str, tuple[str, str]]:
    """By type, status and reason; each must be about the generation that is there."""
    body = (await person.all(resource))[name]
    found: dict[str, tuple[str, str]] = {}
    for each in body.get("status", {}).get("conditions", ()):
        assert each["observedGeneration"] == body["metadata"]["generation"], each
        assert each["lastTransitionTime"]
        found[each["type"]] = each["status"], each["reason"]
    return found


def telemetry(name: str, target: Body, **spec: Any) -> Body:
    return {"metadata": {"name": name}, "spec": {"target": target, **spec}}


HOST = {"controls": {"cpu": {"type": "host"}}}


def test_operator_and_agent_do_not_undo_each_other(ground: Ground) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.person.put(NODES, node("a"))
        async with Agent(ground, scene.person) as agent, scene.operator({"STATIC_HP_FRAC": "0"}) as play:
            await play.tick()
            await agent.report("a", APPLIED, play.now_s)
            await scene.person.put(PODS, pod("p", "a", performance=True))
            await play.tick(60)
            twin = (await scene.person.all(NODE_TWINS))["a"]
            assert twin["status"]["controlStatus"]["cpu"]["result"] == "applied"
            by_type = {each["type"]: each for each in twin["status"]["conditions"]}
            assert by_type["Draining"]["status"] == "True"
            assert by_type["Enforced"]["status"] == "True"  # of the spec before this one, as kubectl wait can see
            assert by_type["Enforced"]["observedGeneration"] < twin["metadata"]["generation"]
            await agent.report("a", LOCKED, play.now_s)
            assert await conditions(scene.person, NODE_TWINS, "a") == {
                "Draining": ("True", "PerformancePods"),
                "Enforced": ("False", "Blocked"),
            }
            await play.tick(60)  # the cap that is not there counts as 100 %
            scene.link.take()
            await play.tick(1)
            assert scene.link.take() == []

    play_out(ground, scenario)


def test_a_pin_says_whether_it_counts_and_what_became_of_it(ground: Ground) -> None:
    async def scenario(scene: Scene) -> None:
        for name in ("a", "b"):
            await scene.person.put(NODES, node(name))
        await scene.person.put(NODES, node("reserved", reserved="true"))
        person = scene.person
        async with Agent(ground, person) as agent, scene.operator({"STATIC_HP_FRAC": "1"}) as play:
            await play.tick()
            for name, target in (("first", "a"), ("away", "reserved"), ("gone", "nowhere")):
                await person.put(NODE_POWER_PROFILES, pin(name, target, "eco"))
            await person.put(NODE_POWER_PROFILES, pin("short", "b", "eco", play.now_s + 30))
            await person.put(NODE_POWER_PROFILES, pin("z-second", "a", "performance"))
            await play.tick()
            said = {name: await conditions(person, NODE_POWER_PROFILES, name) for name in ("first", "short")}
            pending = {"Accepted": ("True", "Accepted"), "Enforced": ("Unknown", "NotReported")}
            assert said == {"first": pending, "short": pending}
            refused = {
                name: await conditions(person, NODE_POWER_PROFILES, name) for name in ("away", "gone", "z-second")
            }
            assert {name: each["Accepted"] for name, each in refused.items()} == {
                "away": ("False", "OutOfScope"),
                "gone": ("False", "NodeUnknown"),
                "z-second": ("False", "Shadowed"),
            }
            assert all(each["Enforced"][0] == "False" for each in refused.values())

            await agent.report("a", APPLIED, play.now_s)
            await agent.report("b", LOCKED, play.now_s)
            await play.tick()
            assert (await conditions(person, NODE_POWER_PROFILES, "first"))["Enforced"] == ("True", "Applied")
            assert (await conditions(person, NODE_POWER_PROFILES, "short"))["Enforced"] == ("False", "Blocked")
            control = (await person.all(NODE_POWER_PROFILES))["short"]["status"]["control"]
            assert control == {"cpu": {"backend": "rapl", "result": "blocked", "message": "locked by the BIOS"}}

            scene.link.take()
            await agent.report("a", APPLIED, play.now_s + 120)  # only its time is new
            await play.tick(1)
            assert [call for call in scene.link.take() if "nodepowerprofiles" in call] == []

            await person.edit(NODE_POWER_PROFILES, "first", {"spec": {"profile": "performance"}})
            await play.tick(60)
            assert (await conditions(person, NODE_POWER_PROFILES, "first"))["Enforced"] == ("Unknown", "NotReported")
            short = await conditions(person, NODE_POWER_PROFILES, "short")
            assert short == {"Accepted": ("False", "Expired"), "Enforced": ("False", "Expired")}
            assert "control" not in (await person.all(NODE_POWER_PROFILES))["short"]["status"]

    play_out(ground, scenario)


def test_a_telemetry_profile_counts_what_became_of_its_nodes(ground: Ground) -> None:
    async def scenario(scene: Scene) -> None:
        person = scene.person
        await person.put(NODES, node("a"))
        for name in ("b", "c", "d"):
            await person.put(NODES, node(name, row="1"))
        row = {"scope": "cluster", "nodeSelector": {"matchLabels": {"joulie.io/row": "1"}}}
        none = {"scope": "cluster", "nodeSelector": {"matchLabels": {"joulie.io/row": "9"}}}
        for body in (
            telemetry("all", {"scope": "cluster"}, **HOST),
            telemetry("row", row, **HOST),
            telemetry("none", none, **HOST),
            telemetry("one", {"scope": "node", "nodeName": "d"}, **HOST),
            telemetry("lost", {"scope": "node", "nodeName": "nowhere"}, **HOST),
            telemetry("readings", {"scope": "cluster"}, sources={"cpu": {"type": "host"}}),
        ):
            await person.put(TELEMETRY_PROFILES, body)
        async with Agent(ground, person) as agent, scene.operator() as play:
            await play.tick()
            for name, result in (("a", APPLIED), ("b", APPLIED), ("c", LOCKED), ("d", APPLIED)):
                await agent.report(name, result, play.now_s)
            await play.tick()

            async def count(name: str) -> str:
                nodes = (await person.all(TELEMETRY_PROFILES))[name]["status"]["nodes"]
                return " ".join(f"{key}={value}" for key, value in sorted(nodes.items()) if value)

            assert await count("all") == "applied=1 routed=1"
            assert await count("row") == "applied=1 blocked=1 routed=2"
            assert await count("one") == "applied=1 routed=1"
            assert await count("none") == ""
            assert await count("readings") == "routed=4"
            said = {
                name: await conditions(person, TELEMETRY_PROFILES, name)
                for name in await person.all(TELEMETRY_PROFILES)
            }
            accepted = {name: each["Accepted"][1] for name, each in said.items()}
            assert accepted == {
                **dict.fromkeys(("all", "row", "one", "readings"), "Routing"),
                "none": "NoNodes",
                "lost": "NodeUnknown",
            }
            assert said["all"]["Working"] == said["one"]["Working"] == ("True", "Applied")
            assert said["row"]["Working"] == ("False", "Blocked")
            assert said["readings"]["Working"] == ("Unknown", "NoCaps")

            scene.link.take()
            await play.tick(1)
            assert scene.link.take() == []
            await person.put(TELEMETRY_PROFILES, telemetry("row-2", row, **HOST))
            await play.tick(1)
            assert scene.link.take() == ["patch telemetryprofiles/status row-2"]
            assert (await conditions(person, TELEMETRY_PROFILES, "row-2"))["Accepted"] == ("False", "Shadowed")

    play_out(ground, scenario)


def test_what_an_older_operator_patched_does_not_outlive_it(ground: Ground) -> None:
    async def scenario(scene: Scene) -> None:
        person = scene.person
        await person.put(NODES, node("a"))
        await person.put(NODE_TWINS, {"metadata": {"name": "a"}, "spec": {"nodeName": "a", "profile": "eco"}})
        stale = {"effectiveCapState": {"cpuPct": 60, "gpuPct": 60}, "estimatedPUE": 1.4}
        theirs = {"controlStatus": {"cpu": {"result": "applied", "backend": "rapl"}}}
        await person.edit(NODE_TWINS, "a", {"status": stale | theirs}, status=True)
        async with scene.operator({"STATIC_HP_FRAC": "0"}) as play:
            await play.tick()
            status = (await person.all(NODE_TWINS))["a"]["status"]
            assert "estimatedPUE" not in status
            assert status["effectiveCapState"] == {"cpuPct": 60}
            assert status["controlStatus"] == theirs["controlStatus"]

    play_out(ground, scenario)


@pytest.mark.control_plane
@pytest.mark.slow
@pytest.mark.xdist_group("control_plane")
def test_kubectl_waits_shows_and_describes_conditions(fresh_cluster: ControlPlane, kubectl: Path) -> None:
    def run(*arguments: str) -> str:
        command = [str(kubectl), "--kubeconfig", str(fresh_cluster.kubeconfig), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    async def scenario(scene: Scene) -> None:
        await scene.person.put(NODES, node("a"))
        await scene.person.put(TELEMETRY_PROFILES, telemetry("all", {"scope": "cluster"}, **HOST))
        async with Agent(scene.ground, scene.person) as agent, scene.operator({"STATIC_HP_FRAC": "1"}) as play:
            await play.tick()
            await scene.person.put(NODE_POWER_PROFILES, pin("keep", "a", "eco"))
            await play.tick()
            await agent.report("a", APPLIED, play.now_s)
            await play.tick()

    play_out(RealGround(fresh_cluster), scenario)
    for waited in ("Enforced nodetwin/a", "Draining=False nt/a", "Enforced npp/keep", "Accepted npp/keep"):
        condition, name = waited.split()
        assert "condition met" in run("wait", f"--for=condition={condition}", name, "--timeout=10s")
    for condition in ("Accepted", "Working"):
        assert "condition met" in run("wait", f"--for=condition={condition}", "tp/all", "--timeout=10s")
    header, row = run("get", "nt").splitlines()
    assert dict(zip(header.split(), row.split(), strict=False))["NAME"] == "a"
    assert row[header.index("ENFORCED") :].startswith("True")
    header, row = run("get", "npp").splitlines()
    assert row[header.index("ACCEPTED") :].startswith("True")
    assert row[header.index("ENFORCED") :].startswith("True")
    header, row = run("get", "tp").splitlines()
    assert row[header.index("NODES") :].startswith("1")
    described = run("describe", "nt", "a")
    assert "Observed Generation:" in described
    assert "every cap that is wanted holds" in described

    run("patch", "nt", "a", "--type=merge", "-p", '{"spec":{"profile":"performance"}}')  # no agent has acted on that
    with pytest.raises(subprocess.CalledProcessError):
        run("wait", "--for=condition=Enforced", "nt/a", "--timeout=1s")
