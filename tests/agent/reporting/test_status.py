"""What is written about a node, when, how fast, and what happens to writes that fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.agent.cluster_view import AgentScope, AgentView, keep_up_to_date
from joulie.agent.outcome import CapOutcome, Notice
from joulie.agent.reporting import status
from joulie.agent.reporting.reporter import Reporter
from joulie.agent.reporting.status import (
    REFRESH_S,
    ControlReports,
    enforced_condition,
    hardware_writes,
    next_moment_s,
    results_of,
)
from joulie.agent.shards import Shard
from joulie.cluster.decoding import decoders
from joulie.cluster.memory.cluster import MemoryCluster, MemoryServer
from joulie.cluster.memory.write_rules import merged
from joulie.cluster.patches import difference
from joulie.cluster.port import EVENTS, NODE_HARDWARE, NODE_TWINS, NODES, TELEMETRY_PROFILES
from joulie.model.api import NodeHardwareStatus
from joulie.model.api.hardware import CpuHardware, Memory
from joulie.settings import AgentSettings, load
from tests.agent.world import node, scenario, twin, until

NONE = CapOutcome("none")
APPLIED = results_of(CapOutcome("applied", "rapl", "432 W"), NONE)
BLOCKED = results_of(CapOutcome("blocked", "none", "no permission"), CapOutcome("applied", "nvidia", "420 W"))


# --- when ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("back_s", [600.0, 86400.0])
def test_a_clock_that_is_put_back_does_not_make_an_agent_silent(back_s: float) -> None:
    reports = ControlReports()
    reports.want("a", APPLIED)
    reports.written("a", APPLIED, 100_000.0)
    assert reports.due(100_000.0) == []
    assert reports.due(100_000.0 - back_s) == [("a", APPLIED)]


def test_what_is_new_is_due_at_once_and_what_was_said_only_when_its_moment_comes() -> None:
    reports = ControlReports()
    assert reports.want("a", APPLIED)
    assert reports.due(1000.0) == [("a", APPLIED)]
    reports.written("a", APPLIED, 1000.0)
    assert not reports.want("a", APPLIED)
    assert reports.due(1000.5) == []
    assert reports.due(1000.0 + REFRESH_S) == [("a", APPLIED)]
    assert reports.want("a", BLOCKED)
    assert reports.due(1000.6) == [("a", BLOCKED)]


@given(st.text(min_size=1), st.floats(0, 1e10))
def test_a_name_speaks_again_within_one_interval_always_at_its_own_moment(name: str, wall_s: float) -> None:
    moment_s = next_moment_s(name, wall_s)
    assert wall_s < moment_s <= wall_s + REFRESH_S * 1.000001
    assert abs(next_moment_s(name, moment_s + 0.001) - moment_s - REFRESH_S) < 0.01


def test_refreshes_of_many_nodes_are_spread_over_the_interval() -> None:
    reports = ControlReports()
    names = [f"node-{number:04d}" for number in range(1_200)]
    for name in names:
        reports.want(name, APPLIED)
        reports.written(name, APPLIED, 0.0)
    counts = []
    for second in range(1, 241):
        due = reports.due(float(second))
        for name, results in due:
            reports.written(name, results, float(second))
        counts.append(len(due))
    assert sum(counts) == 2 * len(names)
    assert max(counts) < 30  # ten a second on average


def test_a_restarted_agent_does_not_repeat_what_its_twin_says_already() -> None:
    said = decoders.decode_twin(
        b'{"metadata":{"name":"a"},"status":{"controlStatus":{"cpu":{"backend":"rapl","result":"applied",'
        b'"message":"432 W","updatedAt":"2026-01-01T00:00:00Z"}}}}'
    )
    reports = ControlReports()
    reports.already_there("a", status.control_status_of(said))
    reports.want("a", APPLIED)
    written_s = 1767225600.0
    assert reports.due(written_s + 60) == []
    assert reports.due(written_s + REFRESH_S) == [("a", APPLIED)]
    reports.want("a", BLOCKED)
    assert reports.due(written_s + 60) == [("a", BLOCKED)]


# --- what ----------------------------------------------------------------------------------------------------------


def test_a_node_without_gpus_says_nothing_of_them_and_long_reasons_are_cut() -> None:
    assert results_of(CapOutcome("applied", "rapl"), NONE).gpu is None
    assert (
        results_of(CapOutcome("applied", "rapl"), CapOutcome("none", message="the agent was stopped")).gpu is not None
    )
    message = results_of(CapOutcome("error", "rapl", "x\n" * 5_000), NONE).cpu.message
    assert message is not None
    assert len(message) <= 1024
    assert "\n" not in message


def test_a_report_names_only_what_is_the_agents() -> None:
    write = status.twin_write("a", APPLIED, enforced_condition(APPLIED, None, 0.0), 0.0)
    assert "gpu" not in write.body["status"]["controlStatus"]
    assert write.body["status"]["controlStatus"]["cpu"]["updatedAt"] == "1970-01-01T00:00:00Z"
    assert set(write.body) == {"status"}
    assert set(write.body["status"]) == {"controlStatus", "conditions"}  # the rest is the operator's
    assert [condition["type"] for condition in write.body["status"]["conditions"]] == ["Enforced"]


@pytest.mark.parametrize(
    ("cpu", "gpu", "said"),
    [
        (CapOutcome("applied", "rapl"), NONE, ("True", "Applied")),
        (CapOutcome("applied", "rapl"), CapOutcome("applied", "nvidia"), ("True", "Applied")),
        (CapOutcome("applied", "rapl"), CapOutcome("blocked", "nvidia", "no right"), ("False", "Blocked")),
        (CapOutcome("blocked", "rapl", "contested: by another"), NONE, ("False", "Contested")),
        (CapOutcome("blocked", "rapl", "SIMULATE_ONLY, nothing is written: 100 W"), NONE, ("False", "DryRun")),
        (CapOutcome("blocked", "rapl", "locked"), CapOutcome("error", "nvidia", "no answer"), ("False", "Error")),
        (CapOutcome("none", message="the operator is silent"), NONE, ("False", "NotCapped")),
    ],
)
def test_enforced_is_true_only_where_every_cap_holds(cpu: CapOutcome, gpu: CapOutcome, said: tuple[str, str]) -> None:
    condition = enforced_condition(results_of(cpu, gpu, 7), None, 0.0)
    assert (condition.status, condition.reason) == said
    assert condition.observed_generation == 7


def test_a_new_generation_is_news_and_keeps_the_time_of_an_unchanged_status() -> None:
    reports = ControlReports()
    first = results_of(CapOutcome("applied", "rapl"), NONE, 1)
    reports.want("a", first)
    reports.written("a", first, 0.0, enforced_condition(first, None, 0.0))
    assert reports.due(1.0) == []
    second = results_of(CapOutcome("applied", "rapl"), NONE, 2)
    assert reports.want("a", second)
    assert reports.due(1.0) == [("a", second)]
    condition = enforced_condition(second, reports.enforced("a"), 1.0)
    assert condition.last_transition_time == "1970-01-01T00:00:00Z"
    assert condition.observed_generation == 2
    failed = results_of(CapOutcome("error", "rapl", "x"), NONE, 2)
    assert enforced_condition(failed, condition, 2.0).last_transition_time == "1970-01-01T00:00:02Z"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(st.text(max_size=2), _JSON.filter(lambda value: value is not None), max_size=3)


@given(_OBJECTS, _OBJECTS)
def test_a_patch_leads_from_what_is_there_to_what_is_wanted(there: dict[str, Any], wanted: dict[str, Any]) -> None:
    there, wanted = _without_none(there), _without_none(wanted)
    assert merged(there, difference(there, wanted)) == wanted


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    return value


def test_hardware_is_created_with_the_node_as_owner_and_then_only_patched_where_it_changed() -> None:
    found = NodeHardwareStatus(cpu=CpuHardware(model="EPYC 9654", sockets=2), memory=Memory(1024))
    create, patch = hardware_writes("a", "uid-1", found, None, 0.0)
    assert create.body["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
    assert patch.body["status"]["cpu"] == {"model": "EPYC 9654", "sockets": 2}
    (condition,) = patch.body["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Discovered", "False", "Unavailable")
    there = decoders.decode_hardware(
        b'{"metadata":{"name":"a"},"status":{"cpu":{"model":"EPYC 9654","sockets":1,"vendor":"x"},'
        b'"memory":{"totalBytes":1024},"updatedAt":"2026-01-01T00:00:00Z"}}'
    )
    (patch,) = hardware_writes("a", "uid-1", found, there, 0.0)
    assert patch.body["status"]["cpu"] == {"model": "EPYC 9654", "sockets": 2}
    assert "cpu" in patch.owned
    same = decoders.decode_hardware(
        b'{"metadata":{"name":"a"},"status":{"cpu":{"model":"EPYC 9654","sockets":2.0},"memory":{"totalBytes":1024},'
        b'"conditions":[{"type":"Discovered","status":"False","reason":"Unavailable"}]}}'
    )
    assert hardware_writes("a", "uid-1", found, same, 0.0) == []


# --- how -----------------------------------------------------------------------------------------------------------


class Desk:
    """A reporter with its cluster."""

    def __init__(self, names: list[str]) -> None:
        self.server = MemoryServer()
        for name in names:
            self.server.put(NODES, node(name), "")
            self.server.put(NODE_TWINS, twin(name), "")
        self.cluster = MemoryCluster(self.server)
        settings = load(AgentSettings, {"AGENT_MODE": "pool"})
        self.view = AgentView(AgentScope(settings, Shard(0, 1)), lambda *_: None)
        self.reporter = Reporter(self.cluster, self.view, "test")

    async def __aenter__(self) -> Desk:
        self._tasks = [asyncio.create_task(keep_up_to_date(self.cluster, self.view))]
        await until(lambda: self.view.synced, "the cluster is known")
        self._tasks.append(asyncio.create_task(self.reporter.run()))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.cluster.close()

    def said(self, name: str) -> str | None:
        for body in self.server.all(NODE_TWINS):
            if body["metadata"]["name"] == name:
                result: str | None = body["status"].get("controlStatus", {}).get("cpu", {}).get("result")
                return result
        return None


def _with_desk(names: list[str], play: Callable[[Desk], Any]) -> None:
    async def whole() -> None:
        async with Desk(names) as desk:
            await play(desk)

    scenario(whole())


def test_nothing_is_written_twice_and_nothing_that_did_not_change() -> None:
    async def play(desk: Desk) -> None:
        found = NodeHardwareStatus(cpu=CpuHardware(model="EPYC 9654"))
        for _ in range(20):
            desk.reporter.results("a", APPLIED, ())
            desk.reporter.hardware("a", found)
            await asyncio.sleep(0.02)
        assert desk.said("a") == "applied"
        writes = {call: number for call, number in desk.cluster.calls.items() if call[0] not in ("list", "watch")}
        assert writes == {
            ("create", "nodehardwares"): 1,
            ("patch_status", "nodehardwares"): 1,
            ("patch_status", "nodetwins"): 1,
        }

    _with_desk(["a"], play)


def test_writes_that_fail_are_made_later_and_the_others_are_not_held_up_by_a_refusal() -> None:
    async def play(desk: Desk) -> None:
        desk.cluster.fail_next(3, verb="patch_status", status=503)
        desk.cluster.fail_next(1, verb="patch_status", key="b", status=422)
        for name in ("a", "b", "c"):
            desk.reporter.results(name, APPLIED, ())
        await until(lambda: desk.said("a") == desk.said("c") == "applied", "both are written")
        assert desk.reporter.failures >= 2

    _with_desk(["a", "b", "c"], play)


def test_an_outage_is_one_line_and_ends_with_everything_written() -> None:
    async def play(desk: Desk) -> None:
        desk.cluster.cut_off()
        for name in ("a", "b"):
            desk.reporter.results(name, APPLIED, ())
        await asyncio.sleep(0.3)
        assert desk.said("a") is None
        desk.cluster.reconnect()
        await until(lambda: desk.said("a") == desk.said("b") == "applied", "it is written after all")

    _with_desk(["a", "b"], play)


def test_a_twin_that_is_made_anew_is_told_again() -> None:
    async def play(desk: Desk) -> None:
        desk.reporter.results("a", APPLIED, ())
        await until(lambda: desk.said("a") == "applied", "it is told")
        desk.server.delete(NODE_TWINS, "a", None)
        await until(lambda: "a" not in desk.view.twins, "it is gone")
        desk.server.put(NODE_TWINS, twin("a"), "")
        await until(lambda: "a" in desk.view.twins, "it is back")
        desk.reporter.results("a", BLOCKED, ())
        desk.reporter.results("a", APPLIED, ())
        await until(lambda: desk.said("a") == "applied", "it is told again")

    _with_desk(["a"], play)


def test_profiles_and_events_are_written_too() -> None:
    async def play(desk: Desk) -> None:
        spec = {"target": {"scope": "node", "nodeName": "a"}}
        desk.server.put(TELEMETRY_PROFILES, {"metadata": {"name": "p"}, "spec": spec}, "")
        await until(lambda: "p" in desk.view.profiles, "the profile is known")
        desk.reporter.results("a", BLOCKED, ["p"])
        desk.reporter.event("a", Notice("CapContested", "other software", "warning", event=True))
        await until(lambda: bool(desk.server.all(EVENTS)), "the event is written")
        (event,) = desk.server.all(EVENTS)
        assert (event["reason"], event["type"], event["involvedObject"]["name"]) == ("CapContested", "Warning", "a")
        (told,) = desk.server.all(TELEMETRY_PROFILES)
        assert told["status"]["control"]["cpu"]["result"] == "blocked"
        assert told["status"]["control"]["gpu"]["backend"] == "nvidia"

    _with_desk(["a"], play)


@pytest.mark.slow
def test_writes_leave_at_a_pace_that_grows_with_the_pool() -> None:
    """A burst of 300 takes as long as the pace says, not as long as the server would need."""

    async def play(desk: Desk) -> None:
        began_s = asyncio.get_running_loop().time()
        for number in range(300):
            desk.reporter.results(f"n{number}", APPLIED, ())
        await until(lambda: all(desk.said(f"n{number}") == "applied" for number in range(300)), "all are written")
        took_s = asyncio.get_running_loop().time() - began_s
        assert took_s > 300 / 40.0 * 0.8  # 10 and one for every ten nodes, a second

    _with_desk([f"n{number}" for number in range(300)], play)


def test_a_hardware_object_that_exists_already_is_only_patched() -> None:
    async def play(desk: Desk) -> None:
        desk.server.put(NODE_HARDWARE, {"metadata": {"name": "a"}, "status": {"cpu": {"model": "old"}}}, "")
        desk.reporter.hardware("a", NodeHardwareStatus(cpu=CpuHardware(model="EPYC 9654")))
        await until(
            lambda: desk.server.all(NODE_HARDWARE)[0]["status"]["cpu"]["model"] == "EPYC 9654", "its status is written"
        )

    _with_desk(["a"], play)


def test_nothing_is_published_of_a_node_before_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("joulie.agent.reporting.reporter.POLL_S", 0.1)

    async def play(desk: Desk) -> None:
        desk.reporter.hardware("late", NodeHardwareStatus(cpu=CpuHardware(model="EPYC 9654")))
        await asyncio.sleep(0.3)
        assert desk.server.all(NODE_HARDWARE) == []
        desk.server.put(NODES, node("late"), "")
        await until(lambda: any("status" in body for body in desk.server.all(NODE_HARDWARE)), "it is published")

    _with_desk(["a"], play)


@pytest.mark.slow
def test_last_words_are_written_at_no_pace() -> None:
    async def play(desk: Desk) -> None:
        for number in range(200):
            desk.reporter.results(f"n{number}", BLOCKED, ())
        await desk.reporter.flush(hurried=True)
        assert all(desk.said(f"n{number}") == "blocked" for number in range(200))

    _with_desk([f"n{number}" for number in range(200)], play)
