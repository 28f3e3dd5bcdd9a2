"""The contract of applied statuses: two processes share a status, in memory and on a real API server alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import json

from joulie.cluster.patches import apply_status
from joulie.cluster.port import NODE_TWINS, Cluster, ClusterError, NotFoundError
from joulie.model.names import AGENT_MANAGER, OPERATOR_MANAGER
from tests.cluster.clusters import RealWorld, World, twin
from tests.cluster.watching import run

SINCE = "2026-11-01T12:00:00Z"
OPERATORS = ("schedulableClass", "hardwareDensityScore", "effectiveCapState")


def condition(kind: str, status: str = "True", **fields: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "status": status,
        "reason": "Because",
        "message": "",
        "lastTransitionTime": SINCE,
        "observedGeneration": 1,
    } | fields


def play(world: World, scenario: Callable[[Cluster, Cluster], Awaitable[None]]) -> None:
    """A scenario of an operator and an agent, on one twin `a`."""

    async def whole() -> None:
        operator, agent = world.client(manager=OPERATOR_MANAGER), world.client(manager=AGENT_MANAGER)
        try:
            await operator.create(NODE_TWINS, twin("a"))
            await scenario(operator, agent)
        finally:
            await operator.close()
            await agent.close()

    run(whole())


async def status_of(cluster: Cluster) -> dict[str, Any]:
    return dict(json.decode(await cluster.get(NODE_TWINS, "a"))["status"])


def statuses(status: dict[str, Any]) -> dict[str, str]:
    return {each["type"]: each["status"] for each in status["conditions"]}


def test_two_processes_share_the_list_of_conditions(world: World) -> None:
    async def scenario(operator: Cluster, agent: Cluster) -> None:
        await operator.apply_status(
            NODE_TWINS, "a", {"schedulableClass": "eco", "conditions": [condition("Draining", "False")]}
        )
        enforced = {"controlStatus": {"cpu": {"result": "applied"}}, "conditions": [condition("Enforced")]}
        await agent.apply_status(NODE_TWINS, "a", enforced)
        await operator.apply_status(
            NODE_TWINS, "a", {"schedulableClass": "draining", "conditions": [condition("Draining")]}
        )
        status = await status_of(operator)
        assert statuses(status) == {"Draining": "True", "Enforced": "True"}
        assert status["schedulableClass"] == "draining"
        assert status["controlStatus"] == {"cpu": {"result": "applied"}}

    play(world, scenario)


def test_what_is_no_longer_applied_goes_and_what_others_wrote_stays(world: World) -> None:
    async def scenario(operator: Cluster, agent: Cluster) -> None:
        await agent.apply_status(NODE_TWINS, "a", {"conditions": [condition("Enforced")]})
        full = {"hardwareDensityScore": 12.5, "effectiveCapState": {"cpuPct": 60, "gpuPct": 70}}
        await operator.apply_status(NODE_TWINS, "a", full | {"conditions": [condition("Draining")]})
        await operator.apply_status(NODE_TWINS, "a", {"effectiveCapState": {"cpuPct": 60}})
        assert await status_of(operator) == {
            "effectiveCapState": {"cpuPct": 60},
            "conditions": [condition("Enforced")],
        }

    play(world, scenario)


def test_who_applies_last_speaks_and_takes_over(world: World) -> None:
    """As when the operator says that an agent is silent, and the agent comes back."""

    async def scenario(operator: Cluster, agent: Cluster) -> None:
        await agent.apply_status(NODE_TWINS, "a", {"conditions": [condition("Enforced")]})
        await operator.apply_status(
            NODE_TWINS, "a", {"conditions": [condition("Enforced", "Unknown", reason="Silent")]}
        )
        assert statuses(await status_of(agent)) == {"Enforced": "Unknown"}
        await agent.apply_status(NODE_TWINS, "a", {"conditions": [condition("Enforced")]})
        await operator.apply_status(NODE_TWINS, "a", {"schedulableClass": "eco"})
        assert statuses(await status_of(agent)) == {"Enforced": "True"}

    play(world, scenario)


def test_a_field_that_a_patch_wrote_as_well_outlives_the_apply_but_not_the_owner(world: World) -> None:
    """As after an upgrade from a version that patched: its fields would stay for ever."""

    async def scenario(operator: Cluster, agent: Cluster) -> None:
        written = {"hardwareDensityScore": 12.5, "schedulableClass": "eco", "effectiveCapState": {"gpuPct": 70}}
        await agent.patch(NODE_TWINS, "a", {"status": written}, status=True)
        await operator.apply_status(NODE_TWINS, "a", written)
        await operator.apply_status(NODE_TWINS, "a", {"schedulableClass": "eco"})
        assert (await status_of(operator))["hardwareDensityScore"] == 12.5
        theirs = {"controlStatus": {"cpu": {"result": "applied"}}, "estimatedPUE": 1.5}
        await agent.patch(NODE_TWINS, "a", {"status": theirs}, status=True)
        wanted = {"schedulableClass": "eco", "effectiveCapState": {"cpuPct": 60}}
        answer = await apply_status(operator, NODE_TWINS, "a", wanted, owned=OPERATORS)
        assert json.decode(answer)["status"] == theirs | wanted
        assert await status_of(operator) == theirs | wanted

    play(world, scenario)


def test_an_apply_that_changes_nothing_makes_no_version(world: World) -> None:
    async def scenario(operator: Cluster, agent: Cluster) -> None:
        status = {
            "schedulableClass": "eco",
            "effectiveCapState": {"cpuPct": 60.0},
            "conditions": [condition("Draining")],
        }
        first = json.decode(await operator.apply_status(NODE_TWINS, "a", status))["metadata"]
        again = json.decode(await operator.apply_status(NODE_TWINS, "a", status))["metadata"]
        assert again["resourceVersion"] == first["resourceVersion"]
        assert first["generation"] == 1

    play(world, scenario)


def test_an_apply_needs_its_object_its_right_and_a_valid_status(world: World) -> None:
    async def scenario(operator: Cluster, agent: Cluster) -> None:
        with pytest.raises(NotFoundError):
            await agent.apply_status(NODE_TWINS, "b", {"conditions": [condition("Enforced")]})
        with pytest.raises(ClusterError) as refusal:
            await agent.apply_status(NODE_TWINS, "a", {"conditions": [condition("Enforced", "Perhaps")]})
        assert not refusal.value.is_transient
        with pytest.raises(ClusterError):
            await agent.apply_status(NODE_TWINS, "a", {"schedulableClass": "eco"}, may_send=lambda: False)
        assert "status" not in json.decode(await agent.get(NODE_TWINS, "a"))

    play(world, scenario)


def test_the_server_knows_who_wrote_what(world: World) -> None:
    if not isinstance(world, RealWorld):
        pytest.skip("only a real API server publishes managedFields")

    async def scenario(operator: Cluster, agent: Cluster) -> None:
        await operator.patch(NODE_TWINS, "a", {"spec": {"profile": "performance"}})
        await operator.apply_status(NODE_TWINS, "a", {"conditions": [condition("Draining")]})
        await agent.apply_status(NODE_TWINS, "a", {"conditions": [condition("Enforced")]})
        entries = json.decode(await agent.get(NODE_TWINS, "a"))["metadata"]["managedFields"]
        assert {(each["manager"], each["operation"], each.get("subresource", "")) for each in entries} == {
            (OPERATOR_MANAGER, "Update", ""),
            (OPERATOR_MANAGER, "Apply", "status"),
            (AGENT_MANAGER, "Apply", "status"),
        }
        (agents,) = [each["fieldsV1"] for each in entries if each["manager"] == AGENT_MANAGER]
        assert list(agents["f:status"]["f:conditions"]) == ['k:{"type":"Enforced"}']

    play(world, scenario)
