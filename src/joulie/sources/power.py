"""Measured node power, from one PromQL query or from an HTTP endpoint for each node."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import quote

import aiohttp
import msgspec
from msgspec import Struct

from joulie.model.rfc3339 import parse_time_s
from joulie.model.snapshot import PowerReading
from joulie.sources.node_queries import NODE_PLACE, NodeAnswer, NodeQuery
from joulie.sources.prometheus import NODE_LABELS, Sample
from joulie.sources.transport import Limits, SourceError, ask_each, get, one_line, raise_if_all_failed

_MILLISECONDS_FROM = 1e11  # as seconds this is the year 5138


class PrometheusPower(NodeQuery):
    """Node power as PromQL, Kepler's series by default."""

    async def read(self, nodes: Sequence[str]) -> NodeAnswer[PowerReading]:
        now_s, found = await self._ask(nodes)
        readings = {node: _reading(samples, now_s) for node, samples in found.by_node.items()}
        return NodeAnswer(readings, found.unanswered, "" if readings or found.unanswered else _remark(found.series))


def _reading(samples: Sequence[Sample], now_s: float) -> PowerReading:
    """All series of a node added up, as old as the oldest."""
    if len(samples) == 1:  # as nearly always
        only = samples[0]
        return PowerReading("kepler", only.value, min(now_s, only.at_s))
    at_s = min(now_s, *(sample.at_s for sample in samples))
    return PowerReading("kepler", total_w(sample.value for sample in samples), at_s)


def _remark(series: int) -> str:
    """A query that finds nothing looks healthy; it is nearly always a wrong metric or label."""
    if not series:
        return "the query finds no fresh series"
    return f"{series} series, but none names a node in scope by {', '.join(NODE_LABELS)}"


def total_w(parts_w: Iterable[float]) -> float:
    """The sum; a part below zero is handed on as it is, so that no other part can hide it."""
    parts = list(parts_w)
    lowest = min(parts, default=math.nan)
    return lowest if lowest < 0 else math.fsum(parts) if all(map(math.isfinite, parts)) else math.nan


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
    """Node power from an endpoint that is asked for each node, as the simulator offers it."""

    def __init__(
        self, session: aiohttp.ClientSession, endpoint: str, wall_clock_s: Callable[[], float], limits: Limits
    ) -> None:
        self._session = session
        self._endpoint = endpoint
        self._now_s = wall_clock_s
        self._limits = limits
        self._stamps: dict[str, tuple[float | str, float]] = {}  # a node's own time stamp, and when it first came

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
        told = _decode_telemetry(reply.body)
        package_w = told.packagePowerWatts
        if package_w is None and told.cpu is not None:
            package_w = told.cpu.packagePowerWatts
        if package_w is None:
            raise SourceError("the answer has no packagePowerWatts")
        gpus_w = told.gpu.powerWattsTotal if told.gpu is not None else None
        parts_w = [_watts(part) for part in (package_w, gpus_w) if part is not None]
        return PowerReading("http", total_w(parts_w), self._measured_at_s(node, told.ts))

    def _measured_at_s(self, node: str, stamp: float | str | None) -> float:
        """The node's own time stamp, but never later than its first sight: one that stands still grows old."""
        now_s = self._now_s()
        if stamp is None:
            self._stamps.pop(node, None)
            return now_s
        seen = self._stamps.get(node)
        if seen is None or seen[0] != stamp:
            seen = self._stamps[node] = (stamp, min(now_s, _time_s(stamp)))
        return seen[1]


def _decode_telemetry(body: bytes) -> _Telemetry:
    try:
        return msgspec.json.decode(body, type=_Telemetry)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        first = error
    try:  # some writers put NaN into JSON, which JSON does not know; it is to be counted, not lost
        return msgspec.convert(json.loads(body), _Telemetry)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise SourceError(f"the answer cannot be read: {one_line(first)}") from None


def _watts(told: float | str) -> float:
    try:
        return float(told)
    except ValueError:
        return math.nan


def _time_s(stamp: float | str) -> float:
    """Seconds or milliseconds since 1970, or RFC 3339; a stamp that is no time is as old as can be."""
    if isinstance(stamp, str):
        try:
            return parse_time_s(stamp)
        except ValueError:
            return 0.0
    if not math.isfinite(stamp):
        return 0.0
    return stamp / 1000 if stamp >= _MILLISECONDS_FROM else stamp
