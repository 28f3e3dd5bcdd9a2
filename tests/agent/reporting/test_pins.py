"""Pins without an operator: the agent enforces them and says in their status what became of them."""

from __future__ import annotations

from pathlib import Path

from joulie.cluster.port import NODE_POWER_PROFILES, NODE_TWINS
from tests.agent.world import Body, World, agent, node, put_twin, scenario, twin, until, world


def _pin(name: str, on: str, profile: str = "eco", **spec: str) -> Body:
    return {"metadata": {"name": name}, "spec": {"nodeName": on, "profile": profile, **spec}}


def _said(around: World, name: str) -> dict[str, tuple[str, str]]:
    """By type, status and reason; only what was said of the pin as it is."""
    body = around.get(NODE_POWER_PROFILES, name) or {}
    return {
        each["type"]: (each["status"], each["reason"])
        for each in body.get("status", {}).get("conditions", ())
        if each["observedGeneration"] == body["metadata"]["generation"]
    }


ENFORCED = {"Accepted": ("True", "Accepted"), "Enforced": ("True", "Applied")}


def test_a_pin_without_an_operator_shows_its_result(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, node("a"), node("b"), node("kept", reserved="true")) as around:
            for body in (
                _pin("a-first", "a"),
                _pin("b-over", "b", expiresAt="2026-01-01T00:00:00Z"),
                _pin("kept-pin", "kept"),
                _pin("nowhere", "c"),
            ):
                around.server.put(NODE_POWER_PROFILES, body, "")
            async with agent(around.server, around.env()) as running:
                await until(lambda: _said(around, "a-first") == ENFORCED, "the pin is enforced")
                control = (around.get(NODE_POWER_PROFILES, "a-first") or {})["status"]["control"]
                assert control["cpu"]["result"] == "applied"
                expired = {"Accepted": ("False", "Expired"), "Enforced": ("False", "Expired")}
                await until(lambda: _said(around, "b-over") == expired, "the pin has expired")
                out = {"Accepted": ("False", "OutOfScope"), "Enforced": ("False", "OutOfScope")}
                await until(lambda: _said(around, "kept-pin") == out, "the node is reserved")
                assert _said(around, "nowhere") == {}  # no such node

                around.server.put(NODE_POWER_PROFILES, _pin("a-second", "a", "performance"), "")
                shadowed = ("False", "Shadowed")
                await until(lambda: _said(around, "a-second").get("Accepted") == shadowed, "an older pin speaks")
                around.server.patch(
                    NODE_POWER_PROFILES, "a-first", {"spec": {"cpu": {"packagePowerCapPctOfMax": 70}}}, status=False
                )
                await until(lambda: _said(around, "a-first") == ENFORCED, "the new target is enforced")

                written = running.cluster.calls["patch_status", "nodepowerprofiles"]
                around.server.put(NODE_POWER_PROFILES, _pin("b-new", "b"), "")
                await until(lambda: _said(around, "b-new") == ENFORCED, "another node is pinned")
                assert running.cluster.calls["patch_status", "nodepowerprofiles"] <= written + 2
                assert running.cluster.calls["patch", "nodepowerprofiles"] == 0

    scenario(play())


def test_where_there_is_a_twin_the_agent_says_nothing_of_pins(tmp_path: Path) -> None:
    async def play() -> None:
        async with world(tmp_path, node("a")) as around:
            put_twin(around.server, twin("a", 60))
            around.server.put(NODE_POWER_PROFILES, _pin("p", "a"), "")
            async with agent(around.server, around.env()) as running:
                await until(lambda: around.control("a").get("cpu", {}).get("result") == "applied", "it is enforced")
                enforced = (around.get(NODE_TWINS, "a") or {})["status"]["conditions"]
                assert [(each["type"], each["status"]) for each in enforced] == [("Enforced", "True")]
                assert running.cluster.calls["patch_status", "nodepowerprofiles"] == 0

    scenario(play())
