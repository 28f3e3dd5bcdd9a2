"""Instant queries to Prometheus, or a server with its API, with a limit on the age of samples.

Prometheus stamps a response with the time of the query, not of the sample, and repeats a sample for five minutes. A
series without new samples therefore looks fresh. There are three remedies, and the best that the server supports is
used: `lookback_delta` (Prometheus 2.44 and later); on older servers a query time so far ahead that exactly the samples
of the last `max_age_s` are within the server's own look-back; otherwise the server's own rule.

The server's time is never compared with local time: the newest timestamp in a response is the server's now, and ages
are measured from it. A newest timestamp that is repeated ages by the local clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
from typing import Literal

import aiohttp
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from joulie.egress import why_unreadable
from joulie.errors import without_credentials
from joulie.settings.parsing import duration_s
from joulie.sources.transport import HttpReply, SourceError, get

NODE_LABELS = ("node_name", "node", "Hostname", "instance")

Freshness = Literal["unknown", "lookback", "shifted", "server"]

MAX_QUERIES = 20_000  # at most one per node
MAX_SERIES = 200_000  # some 60 MB decoded
SAME_TIME_S = 10.0  # smaller clock differences cannot be distinguished from a slow response
# Error types of Prometheus; nothing else of an error response is shown.
_ERROR_TYPES = ("bad_data", "canceled", "execution", "internal", "not_found", "timeout", "unavailable")

_STRINGS = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`')
# Range selectors, sub-queries and time functions would mean something else at a later query time.
_BOUND_TO_NOW = re.compile(
    r"[\[@]|\boffset\b|\b(?:time|timestamp|minute|hour|month|year|day_of_\w+|days_in_month)\s*\(", re.IGNORECASE
)


class QueryRefusedError(SourceError):
    """The server works but rejects the query."""


class Sample(Struct, frozen=True, gc=False):
    """One series of a response."""

    node: str  # from the labels; empty if they name none
    value: float  # may be NaN or infinite
    at_s: float  # by the local clock


class _Labels(Struct, frozen=True, gc=False):
    """The labels of a series that may name a node; others are skipped."""

    node_name: str = ""
    node: str = ""
    Hostname: str = ""
    instance: str = ""

    @property
    def named(self) -> str:
        return self.node_name or self.node or self.Hostname or _without_port(self.instance)


class _Series(Struct, gc=False):
    metric: _Labels = _Labels()
    value: tuple[float, str] | None = None  # absent in a native histogram


class _Vector(Struct, tag="vector", tag_field="resultType"):
    result: list[_Series]


class _Scalar(Struct, tag="scalar", tag_field="resultType"):
    result: tuple[float, str]


class _Text(Struct, tag="string", tag_field="resultType"):
    pass


class _Matrix(Struct, tag="matrix", tag_field="resultType"):
    pass


class _QueryAnswer(Struct):
    status: str
    data: _Vector | _Scalar | _Text | _Matrix | None = None
    errorType: str = ""  # noqa: N815 - as the server writes it


class _FlagsAnswer(Struct):
    data: dict[str, str]


_QUERY_DECODER = msgspec.json.Decoder(_QueryAnswer)
_FLAGS_DECODER = msgspec.json.Decoder(_FlagsAnswer)


class PrometheusClient:
    """Queries one server. Detects at first use, and after each failure, how it can limit the age of samples."""

    def __init__(self, session: aiohttp.ClientSession, address: str, timeout_s: float) -> None:
        self._session = session
        self._base = address.rstrip("/")
        self._shown = without_credentials(self._base)
        self._timeout_s = timeout_s
        self._freshness: Freshness = "unknown"
        self._server_lookback_s = 0.0
        self._detecting = asyncio.Lock()
        self._attempts = 0
        self._newest: dict[str, tuple[float, float]] = {}  # by query: the newest timestamp, and when it was first seen
        self.clock_ahead_s = 0.0  # the server's clock minus local time, from its last response

    @property
    def freshness(self) -> Freshness:
        """How old samples are excluded; `server`: only by the server's own look-back."""
        return self._freshness

    async def query(self, promql: str, now_s: float, max_age_s: float) -> list[Sample]:
        """The samples of an instant query, none older than `max_age_s` if the server supports it."""
        try:
            await self._detect_freshness_once(now_s)
            params, ahead_s = self._question(promql, now_s, max_age_s)
            reply = await get(self._session, f"{self._base}/api/v1/query", self._timeout_s, params)
            return self._by_our_clock(promql, decode_samples(reply, ahead_s), now_s)
        except SourceError as error:
            if not isinstance(error, QueryRefusedError):
                self._freshness = "unknown"  # another server may answer the next query
            raise SourceError(f"{self._shown}: {error}") from error

    def _question(self, promql: str, now_s: float, max_age_s: float) -> tuple[dict[str, str], float]:
        params = {"query": promql}
        if self._freshness == "lookback":
            params["lookback_delta"] = f"{max_age_s:.3f}"
        ahead_s = self._server_lookback_s - max_age_s
        if self._freshness == "shifted" and ahead_s > 0 and can_be_shifted(promql):
            params["time"] = f"{now_s + self.clock_ahead_s + ahead_s:.3f}"
            return params, ahead_s
        return params, 0.0

    def _by_our_clock(self, promql: str, samples: list[Sample], now_s: float) -> list[Sample]:
        """Ages by the server's clock, measured back from when its newest timestamp was first seen."""
        if not samples:
            return samples
        newest_s = max(sample.at_s for sample in samples)
        seen = self._newest.get(promql)
        if seen is None or seen[0] != newest_s:
            if len(self._newest) >= MAX_QUERIES:
                self._newest.clear()
            seen = self._newest[promql] = (newest_s, now_s)
            self.clock_ahead_s = _clock_ahead_s(newest_s, now_s)
        ahead_s = _clock_ahead_s(*seen)
        return samples if not ahead_s else [replace(sample, at_s=sample.at_s - ahead_s) for sample in samples]

    async def _detect_freshness_once(self, now_s: float) -> None:
        """One probe serves all waiting queries; if it fails they fail too, instead of probing in turn."""
        attempts = self._attempts
        async with self._detecting:
            if self._freshness != "unknown":
                return
            if self._attempts != attempts:
                raise SourceError("an earlier query of this round was not answered")
            self._attempts += 1
            await self._detect_freshness(now_s)

    async def _detect_freshness(self, now_s: float) -> None:
        """A server that supports `lookback_delta` rejects an invalid one; others ignore it."""
        params = {"query": "1", "lookback_delta": "none"}
        probe = await get(self._session, f"{self._base}/api/v1/query", self._timeout_s, params)
        if probe.status == 400:
            self._freshness = "lookback"
            return
        with contextlib.suppress(SourceError):  # the server's clock, needed for queries ahead of time
            for sample in decode_samples(probe):
                self.clock_ahead_s = _clock_ahead_s(sample.at_s, now_s)
        flags = await get(self._session, f"{self._base}/api/v1/status/flags", self._timeout_s)
        try:
            told = _FLAGS_DECODER.decode(flags.body).data["query.lookback-delta"]
            self._server_lookback_s, self._freshness = duration_s(told), "shifted"
        except (msgspec.MsgspecError, KeyError, ValueError):
            self._freshness = "server"


def can_be_shifted(promql: str) -> bool:
    """Whether a later query time changes only the age limit of the samples."""
    return not _BOUND_TO_NOW.search(_STRINGS.sub("", promql))


def _clock_ahead_s(server_s: float, now_s: float) -> float:
    ahead_s = server_s - now_s
    return ahead_s if abs(ahead_s) > SAME_TIME_S else 0.0


def _without_port(instance: str) -> str:
    host, colon, port = instance.rpartition(":")
    is_port = bool(colon) and port.isdigit() and (":" not in host or host.endswith("]"))
    return host if is_port else instance


def decode_samples(reply: HttpReply, ahead_s: float = 0.0) -> list[Sample]:
    """The samples of a vector or scalar; SourceError for anything else."""
    if reply.body.count(b'"metric"') > MAX_SERIES:  # before decoding, which needs many times the memory
        raise SourceError(f"the response has more than {MAX_SERIES:,} series")
    try:
        answer = _QUERY_DECODER.decode(reply.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        if reply.status != 200:
            raise SourceError(f"answered HTTP {reply.status}") from None
        raise SourceError(f"the response is not a query result: {why_unreadable(error)}") from None
    if reply.status != 200 or answer.status != "success":
        kind = QueryRefusedError if reply.status < 500 else SourceError
        error_type = f" ({answer.errorType})" if answer.errorType in _ERROR_TYPES else ""
        raise kind(f"refused the query: HTTP {reply.status}{error_type}")
    match answer.data:
        case _Vector(result=series):
            return [
                Sample(each.metric.named, _number(each.value[1]), each.value[0] - ahead_s)
                for each in series
                if each.value is not None
            ]
        case _Scalar(result=(at_s, text)):
            return [Sample("", _number(text), at_s - ahead_s)]
        case _:
            raise SourceError("the query does not return one number per series")


def _number(text: str) -> float:
    """Prometheus writes `NaN`, `+Inf` and `-Inf`; anything else that is not a number is NaN."""
    try:
        return float(text)
    except ValueError:
        return math.nan
