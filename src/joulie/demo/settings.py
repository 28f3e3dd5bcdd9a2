"""Settings of the demo's components: Joulie's own defaults, a few of the demo's, then the environment, then wiring."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from joulie.demo.scenario.machines import OWN_AGENT_LABEL
from joulie.model.names import MANAGED_LABEL
from joulie.settings import AgentSettings, ExtenderSettings, OperatorSettings, SimulatorSettings, load
from joulie.simulator.facility import RACK_POWER, ZONE_AMBIENT

# What the demo sets besides Joulie's own defaults; the environment may say otherwise. Few nodes at full power, more as
# performance pods come; what this building's nodes and racks are fed with, to compare with.
DEFAULTS = {
    "POLICY_TYPE": "queue_aware_v1",
    "QUEUE_HP_BASE_FRAC": "0.2",
    "QUEUE_PERF_PER_HP_NODE": "3",
    "STATIC_HP_FRAC": "0.25",
    "REFERENCE_NODE_POWER_WATTS": "8000",
    "RACK_CAPACITY_WATTS": "30000",
}
FACILITY = {"ENABLE_FACILITY_METRICS": "true"}  # the simulated building reports; operator and extender read it
DECISION_S, LOOK_S = 60.0, 20.0  # as Joulie's defaults, in simulated time
BUDGET_S, POWER_S, FACILITY_S = 5.0, 15.0, 30.0  # at most, as Joulie's defaults in real time
MIN_REAL_S = 0.5  # a faster beat than this would leave no time for anything else
MAX_SPEED = 120.0  # there a decision comes every simulated minute
MIN_AGENTS, SPEED_PER_AGENT = 3, 15.0  # an agent writes at a set pace a real second: faster time takes more agents


class DemoPorts(NamedTuple):
    """On 127.0.0.1."""

    dashboard: int
    operator: int
    agent: int  # of the first pool agent
    extender: int
    simulator: int
    own_agent: int
    more_agents: tuple[int, ...]

    @property
    def pool(self) -> tuple[int, ...]:
        return (self.agent, *self.more_agents)


def pool_agents(speed: float) -> int:
    return max(MIN_AGENTS, math.ceil(speed / SPEED_PER_AGENT))


def local(port: int) -> str:
    return f"127.0.0.1:{port}"


def operator_settings(
    env: Mapping[str, str], policy: str | None, speed: float, port: int, simulator_url: str
) -> OperatorSettings:
    forced = {
        "METRICS_ADDR": local(port),
        "RECONCILE_INTERVAL": _beat(DECISION_S, speed),
        "BUDGET_INTERVAL": f"{max(1.0, min(BUDGET_S, LOOK_S / speed)):.3f}s",
        # A reading is too old after two simulated minutes.
        "POWER_POLL_INTERVAL": _beat(min(DECISION_S, POWER_S * speed), speed),
        "OPERATOR_NODE_POWER_SOURCE": "http",
        "OPERATOR_NODE_POWER_HTTP_ENDPOINT": f"{simulator_url}/telemetry/{{node}}",
        **FACILITY,
        "FACILITY_PROMETHEUS_ADDRESS": simulator_url,
        "FACILITY_POLL_INTERVAL": _beat(min(DECISION_S, FACILITY_S * speed), speed),
        "FACILITY_ZONE_AMBIENT_METRIC_TEMPLATE": f'{ZONE_AMBIENT}{{zone="%s"}}',
        "FACILITY_RACK_POWER_METRIC_TEMPLATE": f'{RACK_POWER}{{rack="%s"}}',
        "KUBE_CLIENT_QPS": "1000",
        "KUBE_CLIENT_BURST": "1000",
        "NODE_SELECTOR": f"{MANAGED_LABEL}=true",
    }
    return load(OperatorSettings, {**DEFAULTS, **env, **_policy(policy), **forced})


def replay_settings(env: Mapping[str, str], policy: str | None) -> tuple[OperatorSettings, ExtenderSettings]:
    """As live, but without a clock to run ahead of and without addresses."""
    forced = {"RECONCILE_INTERVAL": f"{DECISION_S:g}s", "NODE_SELECTOR": f"{MANAGED_LABEL}=true", **FACILITY}
    complete = {**DEFAULTS, **env, **_policy(policy), **forced}
    return load(OperatorSettings, complete), load(ExtenderSettings, complete)


def agent_settings(
    env: Mapping[str, str], speed: float, port: int, simulator_url: str, state_dir: str, shard: int | None
) -> AgentSettings:
    """One of the pool agents that share all nodes but one, or (no shard) the agent of that one."""
    own = shard is None
    control = f"{simulator_url}/control/{{node}}"
    forced = {
        "AGENT_MODE": "pool",
        "METRICS_ADDR": local(port),
        "RECONCILE_INTERVAL": _beat(LOOK_S, speed),
        "POOL_NODE_SELECTOR": f"{MANAGED_LABEL}=true,{'' if own else '!'}{OWN_AGENT_LABEL}",
        "POOL_SHARDS": "1" if own else str(pool_agents(speed)),
        "POOL_SHARD_ID": str(shard or 0),
        "TELEMETRY_CPU_SOURCE": "http",
        "TELEMETRY_CPU_CONTROL": "http",
        "TELEMETRY_GPU_CONTROL": "http",
        "TELEMETRY_CPU_HTTP_ENDPOINT": f"{simulator_url}/telemetry/{{node}}",
        "TELEMETRY_CPU_CONTROL_HTTP_ENDPOINT": control,
        "TELEMETRY_GPU_CONTROL_HTTP_ENDPOINT": control,
        "STATE_DIR": state_dir,
    }
    return load(AgentSettings, {**env, **forced})


def extender_settings(env: Mapping[str, str], port: int) -> ExtenderSettings:
    forced = {"EXTENDER_ADDR": local(port), "METRICS_ADDR": local(port), **FACILITY}
    return load(ExtenderSettings, {**env, **forced})


def simulator_settings(env: Mapping[str, str], speed: float, seed: int) -> SimulatorSettings:
    # At 20 × a step of five simulated seconds is a quarter of a second; faster clocks take longer steps.
    forced = {"SIM_SPEED": f"{speed:g}", "SIM_SEED": str(seed), "SIM_STEP": f"{max(1.0, speed / 4):g}s"}
    return load(SimulatorSettings, {**env, **forced, "SIM_NODE_SELECTOR": ""})


def look_s(speed: float) -> float:
    """How often, in real seconds, agents check what they have to report."""
    return max(MIN_REAL_S, 30.0 / speed)


def _beat(simulated_s: float, speed: float) -> str:
    return f"{max(MIN_REAL_S, simulated_s / speed):.3f}s"


def _policy(name: str | None) -> dict[str, str]:
    return {} if name is None else {"POLICY_TYPE": name}
