"""Where a node's power is read and where its caps go: TelemetryProfiles first, then the agent's own settings. Pure.

What the closest profile leaves out comes from the next one down, and in the end from `TELEMETRY_*`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import quote

from msgspec import Struct

from joulie.control.telemetry_rank import RankedProfiles
from joulie.model.api import TelemetryProfile
from joulie.model.api.telemetry import Control, Source
from joulie.model.names import ControlMode, ControlType, SourceType
from joulie.settings import AgentSettings

NODE_PLACE = "{node}"


class PowerRoute(Struct, frozen=True):
    """Where the power of one kind of device is read."""

    type: SourceType
    endpoint: str = ""
    query: str = ""
    timeout_s: float = 5.0
    fault: str = ""  # why this route leads nowhere


class ControlRoute(Struct, frozen=True):
    """Where the caps of one kind of device go."""

    type: ControlType
    endpoint: str = ""
    timeout_s: float = 5.0
    mode: ControlMode = "auto"
    fault: str = ""
    profile: str = ""  # the TelemetryProfile that said so; empty: the settings did


class Route(Struct, frozen=True):
    """All routes of one node, and the profiles of scope `node` in which its results are reported."""

    cpu_power: PowerRoute
    gpu_power: PowerRoute
    cpu: ControlRoute
    gpu: ControlRoute
    reports_to: tuple[str, ...] = ()

    @property
    def gpus_elsewhere(self) -> bool:
        """GPUs are reached by another way than CPUs."""
        return self.gpu.type != "none" and (self.gpu.type, self.gpu.endpoint) != (self.cpu.type, self.cpu.endpoint)


def route_of(
    node: str, labels: Mapping[str, str], profiles: Iterable[TelemetryProfile], settings: AgentSettings
) -> Route:
    """The routes of this node."""
    speaking = RankedProfiles(profiles).speaking(node, labels)
    sources = [profile.spec.sources for profile in speaking if profile.spec.sources is not None]
    controls = [(said, profile.metadata.name) for profile in speaking if (said := profile.spec.controls) is not None]
    cpu, cpu_profile = next(((said.cpu, name) for said, name in controls if said.cpu is not None), (None, ""))
    gpu, gpu_profile = next(((said.gpu, name) for said, name in controls if said.gpu is not None), (None, ""))
    cpu_power = next((said.cpu for said in sources if said.cpu is not None), None)
    gpu_power = next((said.gpu for said in sources if said.gpu is not None), None)
    timeout_s = settings.telemetry_http_timeout_s
    cpu_default = _Default(
        settings.telemetry_cpu_control,
        settings.telemetry_cpu_control_http_endpoint,
        "TELEMETRY_CPU_CONTROL_HTTP_ENDPOINT",
        settings.telemetry_cpu_control_mode,
    )
    gpu_default = _Default(
        settings.telemetry_gpu_control,
        settings.telemetry_gpu_control_http_endpoint,
        "TELEMETRY_GPU_CONTROL_HTTP_ENDPOINT",
    )
    power_default = _Default(
        settings.telemetry_cpu_source, settings.telemetry_cpu_http_endpoint, "TELEMETRY_CPU_HTTP_ENDPOINT"
    )
    return Route(
        cpu_power=_power(cpu_power, "spec.sources.cpu", power_default, node, timeout_s),
        gpu_power=_power(gpu_power, "spec.sources.gpu", _Default("none"), node, timeout_s),  # it steers nothing
        cpu=_control(cpu, cpu_profile, "spec.controls.cpu.http.endpoint", cpu_default, node, timeout_s),
        gpu=_control(gpu, gpu_profile, "spec.controls.gpu.http.endpoint", gpu_default, node, timeout_s),
        reports_to=tuple(
            profile.metadata.name
            for profile in speaking
            if profile.spec.target.scope == "node" and profile.spec.controls is not None
        ),
    )


class _Default(NamedTuple):
    """What the settings say of one route."""

    type: str
    endpoint: str = ""
    variable: str = ""  # that would name the endpoint
    mode: str = "auto"


def _control(
    said: Control | None, profile: str, where: str, default: _Default, node: str, timeout_s: float
) -> ControlRoute:
    """The route of a profile, completed by the settings, or that of the settings alone."""
    http = None if said is None else said.http
    kind = default.type if said is None else said.type
    if kind != "http":
        return ControlRoute("host" if kind == "host" else "none", profile=profile)
    endpoint = default.endpoint if http is None else http.endpoint
    return ControlRoute(
        "http",
        _placed(endpoint, node),
        (http and http.timeout_seconds) or timeout_s,
        _mode((http and http.mode) or default.mode),
        "" if endpoint else f"{where if said else default.variable}: missing",
        profile,
    )


def _power(said: Source | None, where: str, default: _Default, node: str, timeout_s: float) -> PowerRoute:
    kind = default.type if said is None else said.type
    if kind == "prometheus":
        asked = None if said is None else said.prometheus
        if asked is None:
            return PowerRoute("prometheus", fault=f"{where}.prometheus: missing in every TelemetryProfile of this node")
        return PowerRoute("prometheus", _placed(asked.endpoint, node), asked.query.replace(NODE_PLACE, node), timeout_s)
    if kind != "http":
        return PowerRoute("host" if kind == "host" else "none")
    http = None if said is None else said.http
    endpoint = default.endpoint if http is None else http.endpoint
    fault = "" if endpoint else f"{where + '.http.endpoint' if said else default.variable}: missing"
    return PowerRoute("http", _placed(endpoint, node), "", (http and http.timeout_seconds) or timeout_s, fault)


def _placed(text: str, node: str) -> str:
    return text.replace(NODE_PLACE, quote(node, safe=""))


def _mode(text: str) -> ControlMode:
    return "rapl" if text == "rapl" else "dvfs" if text == "dvfs" else "auto"
