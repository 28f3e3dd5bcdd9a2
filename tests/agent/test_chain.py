"""The whole chain on a real API server: a policy decides, agents enforce, machines obey, and the truth is written back.

Everything is a process of its own: operator, two agents of a pool, simulator; the API server and etcd are real.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from joulie.agent.shards import fnv1a_32
from joulie.model.rfc3339 import parse_time_s
from tests.agent.agent_processes import JoulieProcess
from tests.agent.chain import Chain, caps_in_metrics, owned_in_metrics

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

pytestmark = pytest.mark.slow
NODES = 1_000
FEW = 40
PATIENCE_S = 300.0


@pytest.fixture
def ends() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_a_policy_change_reaches_every_machine_and_comes_back_as_the_truth(
    fresh_cluster: ControlPlane, tmp_path: Path, ends: ExitStack
) -> None:
    chain = Chain(fresh_cluster, tmp_path, NODES, ends)
    operator = chain.operator(performance=1.0)
    agents = [chain.agent(shard, 2) for shard in (0, 1)]
    all_nodes = set(chain.names)
    of_shard = [{name for name in all_nodes if fnv1a_32(name) % 2 == shard} for shard in (0, 1)]

    # At full power: all is reported, nothing is capped.
    _wait(agents[0], lambda: _all_say(chain, "applied"), "every twin says applied")
    _wait(agents[0], lambda: len(chain.hardware()) == NODES, "all hardware is published")
    assert set(chain.cpu_caps_w().values()) == {None}
    # A machine that did not answer in time beside other load is published anew once it does.
    _wait(agents[0], lambda: _qualities(chain) == {"exact"}, "all hardware is known exactly")
    assert [owned_in_metrics(agent.page()) for agent in agents] == of_shard
    uncapped_w = chain.power_w()

    # The policy changes: every machine is capped to what its twin says.
    assert operator.stop() == 0
    operator = chain.operator(performance=0.0)
    wanted: dict[str, float] = {}
    _wait(agents[0], lambda: _all_eco(chain) and _qualities(chain) == {"exact"}, "every twin wants eco")
    wanted |= _wanted_w(chain)
    _wait(agents[0], lambda: _as_wanted(chain.cpu_caps_w(), wanted), "every machine is held to what its twin asks")
    _wait(agents[0], lambda: _all_effective(chain), "every twin counts its cap")
    _wait(agents[0], lambda: _requested_is_enforced(agents, wanted), "metrics say the same")
    _wait(agents[0], lambda: _draws_no_more(chain, wanted), "every machine draws what its cap allows")
    assert chain.power_w() < 0.85 * uncapped_w

    # One shard dies: its nodes stay as they are, and can be told from those that an agent looks after.
    agents[1].kill()
    died_s = time.time() + 1.0  # time stamps are whole seconds, and it may have reported in the very second of its end
    assert operator.stop() == 0
    operator = chain.operator(performance=1.0)
    _wait(
        agents[0],
        lambda: {name for name, cap_w in chain.cpu_caps_w().items() if cap_w is None} == of_shard[0],
        "the living shard follows the policy",
    )
    _wait(
        agents[0], lambda: _silent_since(chain, died_s) == of_shard[1], "the dead shard's nodes are silent, all of them"
    )
    assert owned_in_metrics(agents[0].page()) == of_shard[0]
    assert agents[1].page() == ""

    # It is replaced: the new one knows what was found, and takes up its nodes.
    successor = chain.agent(1, 2)
    _wait(successor, lambda: set(chain.cpu_caps_w().values()) == {None}, "they follow, too")
    _wait(successor, lambda: _silent_since(chain, died_s) == set(), "no node is silent any more")
    for agent in (agents[0], successor):
        assert agent.stop(60) == 0


def test_without_an_api_server_for_a_lease_the_machines_are_let_go_and_then_capped_again(
    fresh_cluster: ControlPlane, tmp_path: Path, ends: ExitStack
) -> None:
    chain = Chain(fresh_cluster, tmp_path, FEW, ends)
    chain.operator(performance=0.0, RECONCILE_INTERVAL="1s", TWIN_REFRESH_INTERVAL="2s")
    agent = chain.agent(0, 1, CAP_LEASE="15s", RECONCILE_INTERVAL="1s")
    _wait(agent, lambda: None not in chain.cpu_caps_w().values(), "all are capped")
    time.sleep(20)  # longer than the lease: contact is kept, and twins are kept fresh
    assert None not in chain.cpu_caps_w().values()
    fresh_cluster.kill_apiserver()
    time.sleep(3)
    assert None not in chain.cpu_caps_w().values()  # a short silence changes nothing
    _wait(agent, lambda: set(chain.cpu_caps_w().values()) == {None}, "all are let go")
    _wait(agent, lambda: _told_of(agent, "CapLeaseEnded") == set(chain.names), "the log tells of each")
    fresh_cluster.start_apiserver()
    _wait(agent, lambda: None not in chain.cpu_caps_w().values(), "all are capped again")
    _wait(agent, lambda: {"CapLeaseEnded", "CapLeaseResumed"} <= _reasons(chain), "events tell of it")
    assert agent.stop(60) == 0
    assert set(chain.cpu_caps_w().values()) == {None}


def _wait(process: JoulieProcess, condition: Callable[[], bool], what: str) -> None:
    """Looking costs: a thousand twins are a few megabytes."""
    process.wait_until(condition, PATIENCE_S, what, every_s=1.0)


def _told_of(agent: JoulieProcess, what: str) -> set[str]:
    return {line["node"] for line in agent.log() if line.get("what") == what}


def _qualities(chain: Chain) -> set[str]:
    return {status["quality"]["overall"] for status in chain.hardware().values()}


def _all_say(chain: Chain, result: str) -> bool:
    said = chain.said()
    return len(said) == len(chain.names) and set(said.values()) == {result}


def _all_eco(chain: Chain) -> bool:
    return {twin["spec"]["profile"] for twin in chain.twins().values()} == {"eco"}


def _wanted_w(chain: Chain) -> dict[str, float]:
    """What each twin's spec asks of its CPUs, in watts of the hardware that was published."""
    hardware = chain.hardware()
    return {name: _cpu_w(twin["spec"]["cpu"], hardware[name]["cpu"]) for name, twin in chain.twins().items()}


def _cpu_w(cap: dict[str, Any], cpu: dict[str, Any]) -> float:
    return float(cap["packagePowerCapPctOfMax"] / 100 * cpu["capRange"]["maxWattsPerSocket"] * cpu["sockets"])


def _draws_no_more(chain: Chain, wanted: dict[str, float]) -> bool:
    """A cap settles within a second of its setting."""
    return all(machine["power"]["cpuWatts"] <= wanted[name] * 1.03 for name, machine in chain.machines().items())


def _as_wanted(caps_w: dict[str, float | None], wanted_w: dict[str, float]) -> bool:
    return len(caps_w) == len(wanted_w) and all(
        cap_w is not None and abs(cap_w - wanted_w[name]) <= 1.0 for name, cap_w in caps_w.items()
    )


def _all_effective(chain: Chain) -> bool:
    """The operator counts a cap only while the agent says that it holds."""
    for twin in chain.twins().values():
        status = twin.get("status", {})
        if status.get("controlStatus", {}).get("cpu", {}).get("result") != "applied":
            return False
        if status.get("effectiveCapState", {}).get("cpuPct") != twin["spec"]["cpu"]["packagePowerCapPctOfMax"]:
            return False
    return True


def _requested_is_enforced(agents: list[Any], wanted_w: dict[str, float]) -> bool:
    pages = [agent.page() for agent in agents]
    requested, enforced = (
        {key: value for page in pages for key, value in caps_in_metrics(page, which).items()}
        for which in ("requested", "enforced")
    )
    cpus = {name: watts for (name, device), watts in requested.items() if device == "cpu"}
    return requested == enforced and _as_wanted(dict(cpus), wanted_w)


def _silent_since(chain: Chain, moment_s: float) -> set[str]:
    """Nodes of which nothing was reported since then. Five minutes later that is a silent agent."""
    return {name for name, at in chain.said("updatedAt").items() if at is None or parse_time_s(at) < int(moment_s)}


def _reasons(chain: Chain) -> set[str]:
    events = chain.plane.api.get("/api/v1/namespaces/default/events")["items"]
    return {event["reason"] for event in events}
