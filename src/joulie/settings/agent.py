"""Settings of the node agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from joulie.model import names
from joulie.model.names import ControlMode, ControlType, SourceType
from joulie.model.selector import Selector
from joulie.settings.decision import HardwareSettings, max_connections
from joulie.settings.loading import group, setting
from joulie.settings.parsing import (
    ADDRESS,
    BOOLEAN,
    DURATION,
    DURATION_OR_ZERO,
    LABEL_KEY,
    PCT_OF_MAX,
    SELECTOR,
    TEXT,
    URL,
    Parser,
    integer,
    number,
    one_of,
)

_SOURCE = one_of(*get_args(SourceType))
_CONTROL = one_of(*get_args(ControlType))
_MODE = one_of(*get_args(ControlMode))


def _shard(text: str) -> int | None:
    return None if text == "auto" else integer(0, 100_000).parse(text)


_SHARD = Parser(_shard, "auto (the ordinal at the end of POD_NAME) or a whole number from 0")


@dataclass(frozen=True, slots=True)
class DvfsSettings:
    """The control loop that stands in where a power cap cannot be set directly."""

    ema_alpha: float = setting("DVFS_EMA_ALPHA", "0.3", number(0, 1, above=True), "Weight of a new reading.")
    high_margin_w: float = setting("DVFS_HIGH_MARGIN_W", "10", number(0, 1e6), "Tolerated above the cap.")
    low_margin_w: float = setting("DVFS_LOW_MARGIN_W", "15", number(0, 1e6), "Tolerated below the cap.")
    step_pct: float = setting("DVFS_STEP_PCT", "10", number(1, 100), "Largest change of the throttle at once.")
    cooldown_s: float = setting("DVFS_COOLDOWN", "20s", DURATION_OR_ZERO, "Least time between two changes.")
    trip_count: int = setting("DVFS_TRIP_COUNT", "2", integer(1, 1000), "Readings in a row before a change.")
    min_freq_khz: int = setting("DVFS_MIN_FREQ_KHZ", "1500000", integer(0, 10**8), "Never throttle below this.")


@dataclass(frozen=True, slots=True)
class PinSettings:
    """What a pin leaves open, where no operator completes it."""

    cpu_performance_cap_pct: float = setting(
        "CPU_PERFORMANCE_CAP_PCT_OF_MAX", "100", PCT_OF_MAX, "CPU cap of a performance pin that states none."
    )
    cpu_eco_cap_pct: float = setting(
        "CPU_ECO_CAP_PCT_OF_MAX", "60", PCT_OF_MAX, "CPU cap of an eco pin that states none."
    )
    gpu_performance_cap_pct: float = setting(
        "GPU_PERFORMANCE_CAP_PCT_OF_MAX", "100", PCT_OF_MAX, "GPU cap of a performance pin that states none."
    )
    gpu_eco_cap_pct: float = setting(
        "GPU_ECO_CAP_PCT_OF_MAX", "60", PCT_OF_MAX, "GPU cap of an eco pin that states none."
    )


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """How an agent finds its nodes and devices."""

    dvfs: DvfsSettings = group(DvfsSettings)
    pins: PinSettings = group(PinSettings)
    hardware: HardwareSettings = group(HardwareSettings)
    mode: str = setting("AGENT_MODE", "daemonset", one_of("daemonset", "pool"), "One node, or many over HTTP.")
    node_name: str = setting("NODE_NAME", "", TEXT, "The node of a daemonset agent.")
    reconcile_interval_s: float = setting("RECONCILE_INTERVAL", "20s", DURATION, "Time between two checks of a node.")
    metrics_addr: str = setting("METRICS_ADDR", ":8080", ADDRESS, "Where metrics and health are served.")
    max_connections: int = max_connections()
    simulate_only: bool = setting("SIMULATE_ONLY", "false", BOOLEAN, "Decide and report, write to no device.")
    pool_node_selector: Selector = setting(
        "POOL_NODE_SELECTOR",
        f"{names.MANAGED_LABEL}=true",
        SELECTOR,
        "Nodes of a pool agent; in either mode the nodes on which a pin counts where there is no operator.",
    )
    reserved_label_key: str = setting(
        "RESERVED_LABEL_KEY", names.RESERVED_LABEL, LABEL_KEY, "Nodes with this label set to true are left alone."
    )
    pool_shards: int = setting("POOL_SHARDS", "1", integer(1, 100_000), "How many pool agents share the nodes.")
    pool_shard_id: int | None = setting("POOL_SHARD_ID", "auto", _SHARD, "Which of them this one is.")
    pod_name: str = setting("POD_NAME", "", TEXT, "Name of the agent's pod, for its ordinal.")
    telemetry_cpu_source: str = setting("TELEMETRY_CPU_SOURCE", "host", _SOURCE, "Where CPU power is read.")
    telemetry_cpu_control: str = setting("TELEMETRY_CPU_CONTROL", "host", _CONTROL, "Where CPU caps go.")
    telemetry_gpu_control: str = setting("TELEMETRY_GPU_CONTROL", "host", _CONTROL, "Where GPU caps go.")
    telemetry_cpu_http_endpoint: str = setting(
        "TELEMETRY_CPU_HTTP_ENDPOINT", "", URL, "Telemetry URL with source http; {node} becomes the node."
    )
    telemetry_cpu_control_http_endpoint: str = setting(
        "TELEMETRY_CPU_CONTROL_HTTP_ENDPOINT", "", URL, "CPU control URL; {node} becomes the node."
    )
    telemetry_gpu_control_http_endpoint: str = setting(
        "TELEMETRY_GPU_CONTROL_HTTP_ENDPOINT", "", URL, "GPU control URL; {node} becomes the node."
    )
    telemetry_cpu_control_mode: str = setting(
        "TELEMETRY_CPU_CONTROL_MODE", "auto", _MODE, "Which CPU control to use over HTTP."
    )
    telemetry_http_timeout_s: float = setting(
        "TELEMETRY_HTTP_TIMEOUT_SECONDS", "5", number(0, 3600, above=True), "How long to wait for an answer."
    )
    host_sys_path: str = setting("HOST_SYS_PATH", "/host-sys", TEXT, "Where the host's /sys is mounted.")
    podresources_socket: str = setting(
        "PODRESOURCES_SOCKET",
        "",
        TEXT,
        "Socket of kubelet's pod resources API, to know which pod holds which GPU; empty: it is not asked.",
    )
    state_dir: str = setting(
        "STATE_DIR", "/var/lib/joulie", TEXT, "Where the values found before the first cap are kept."
    )
    cap_lease_s: float = setting(
        "CAP_LEASE", "10m", DURATION, "Without contact for this long the agent acts by itself."
    )
    budget_lease_s: float = setting(
        "BUDGET_LEASE", "60s", DURATION, "Without a renewal by the operator's budget loop for this long: failsafe caps."
    )
    pod_namespace: str = setting(
        "POD_NAMESPACE", "joulie-system", TEXT, "Where the operator's Lease joulie-budget is: the agent's namespace."
    )
    cap_lease_action: str = setting(
        "CAP_LEASE_ACTION", "restore", one_of("restore", "hold"), "What the agent does then."
    )
