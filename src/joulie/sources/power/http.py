"""Measured node power from an HTTP endpoint for each node."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from urllib.parse import quote

import aiohttp
import msgspec
from msgspec import Struct

from joulie.egress import why_unreadable
from joulie.errors import SettingError
from joulie.model.rfc3339 import parse_time_s
from joulie.model.snapshot import PowerReading
from joulie.settings import OperatorSettings
from joulie.sources.node_queries import NODE_PLACE, NodeAnswer
from joulie.sources.power.reader import PowerReader, ReaderContext, total_w
from joulie.sources.transport import RequestLimits, SourceError, ask_each, get, raise_if_all_failed

_MILLISECONDS_FROM = 1e11  # as seconds this is the year 5138


class _Cpu(Struct):
    packagePowerWatts: float | str | None = None  # noqa: N815 - as the endpoint writes it


class _Gpu(Struct):
    powerWattsTotal: float | str | None = None  # noqa: N815


class _Telemetry(Struct):
    packagePowerWatts: float | str | None = None  # noqa: N815
    cpu: _Cpu | None = None
    gpu: _Gpu | None = None
    ts: float | str | None = None


class HttpPower:
    """Node power from an HTTP endpoint per node, such as the simulator's."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        endpoint: str,
        max_age_s: float,
        wall_clock_s: Callable[[], float],
        limits: RequestLimits,
    ) -> None:
        self._session = session
        self._endpoint = endpoint
        self._max_age_s = max_age_s
        self._now_s = wall_clock_s
        self._limits = limits
        self._stamps: dict[str, tuple[float | str, float]] = {}  # a node's own timestamp, and when it was first seen

    async def read(self, nodes: Sequence[str]) -> NodeAnswer[PowerReading]:
        answers = await ask_each(nodes, self._ask, self._limits)
        raise_if_all_failed(answers.failures, nodes)
        self._stamps = {node: self._stamps[node] for node in nodes if node in self._stamps}
        return NodeAnswer(answers.results, answers.failures)

    async def _ask(self, node: str) -> PowerReading:
        url = self._endpoint.replace(NODE_PLACE, quote(node, safe=""))
        reply = await get(self._session, url, self._limits.call_timeout_s)
        if reply.status != 200:
            raise SourceError(f"answered HTTP {reply.status}")
        received = _decode_telemetry(reply.body)
        return PowerReading("http", _node_w(received), self._measured_at_s(node, received.ts))

    def _measured_at_s(self, node: str, stamp: float | str | None) -> float:
        """The node's own timestamp, but never later than when it was first seen: one that stands still ages.

        One that is too old and still moves belongs to a wrong clock, so it counts from when it was first seen. A
        younger one may be late but correct; moving it to now would assign its watts to a time when they were not drawn.
        """
        now_s = self._now_s()
        if stamp is None:
            self._stamps.pop(node, None)
            return now_s
        seen = self._stamps.get(node)
        if seen is None or seen[0] != stamp:
            received_s = _time_s(stamp)
            is_skewed = seen is not None and received_s > 0 and now_s - received_s > self._max_age_s
            seen = self._stamps[node] = (stamp, now_s if is_skewed else min(now_s, received_s))
        return seen[1]


def _node_w(received: _Telemetry) -> float:
    """CPUs plus GPUs if both are present, else the node's total, which includes GPUs."""
    cpu_w = received.cpu.packagePowerWatts if received.cpu is not None else None
    gpu_w = received.gpu.powerWattsTotal if received.gpu is not None else None
    if cpu_w is not None and gpu_w is not None:
        return total_w([_watts(cpu_w), _watts(gpu_w)])
    whole_w = received.packagePowerWatts if received.packagePowerWatts is not None else cpu_w
    if whole_w is None:
        raise SourceError("the response has no packagePowerWatts")
    return total_w([_watts(whole_w)])


def _decode_telemetry(body: bytes | bytearray) -> _Telemetry:
    try:
        return msgspec.json.decode(body, type=_Telemetry)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        first = error
    try:  # some writers put NaN into JSON, which is invalid; it must be counted, not lost
        return msgspec.convert(json.loads(body), _Telemetry)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise SourceError(f"the response cannot be decoded: {why_unreadable(first)}") from None


def _watts(received: float | str) -> float:
    try:
        return float(received)
    except ValueError:
        return math.nan


def _time_s(stamp: float | str) -> float:
    """Seconds or milliseconds since 1970, or RFC 3339; 0 for anything else."""
    if isinstance(stamp, str):
        try:
            return parse_time_s(stamp)
        except ValueError:
            return 0.0
    if not math.isfinite(stamp):
        return 0.0
    return stamp / 1000 if stamp >= _MILLISECONDS_FROM else stamp


def _check(settings: OperatorSettings) -> None:
    endpoint = settings.power_http_endpoint
    if NODE_PLACE not in endpoint:
        wanted = "with OPERATOR_NODE_POWER_SOURCE=http a URL with {node} in it"
        raise SettingError("OPERATOR_NODE_POWER_HTTP_ENDPOINT", endpoint, wanted)


def _open(context: ReaderContext) -> HttpPower:
    endpoint = context.settings.power_http_endpoint
    return HttpPower(context.session, endpoint, context.max_age_s, context.wall_clock_s, context.limits)


READER = PowerReader(_check, _open)
