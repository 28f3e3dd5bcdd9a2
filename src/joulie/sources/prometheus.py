"""Instant queries to Prometheus, or to whatever speaks its API, with a say in how old a sample may be.

Prometheus stamps the answer with the time of the question, not of the sample, and repeats a sample for five minutes
after it came. A series that stands still therefore looks fresh. Three ways out, the best that the server offers:
`lookback_delta` (Prometheus 2.44 and later); on older servers the question is asked for a moment so far ahead that
exactly the samples of the last `max_age_s` are within the server's own look-back; else the server's rule holds.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping
from typing import Literal

import aiohttp
import msgspec
from msgspec import Struct

from joulie.settings.parsing import duration_s
from joulie.sources.transport import Reply, SourceError, get, one_line, without_credentials

NODE_LABELS = ("node_name", "node", "Hostname", "instance")

Freshness = Literal["unknown", "lookback", "shifted", "server"]

_STRINGS = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`')
# Range selectors, sub-queries and everything that speaks of time itself would mean something else a while ahead.
_BOUND_TO_NOW = re.compile(
    r"[\[@]|\boffset\b|\b(?:time|timestamp|minute|hour|month|year|day_of_\w+|days_in_month)\s*\(", re.IGNORECASE
)


class QueryRefusedError(SourceError):
    """The server is well, the query is not."""


class Sample(Struct, frozen=True, gc=False):
    """One series of an answer."""

    labels: Mapping[str, str]
    value: float  # may be NaN or infinite: the reader judges
    at_s: float

    @property
    def node(self) -> str:
        """The node that the labels name; empty when they name none."""
        return node_of(self.labels)


class _Series(Struct):
    metric: dict[str, str] = {}
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
    error: str = ""


class _FlagsAnswer(Struct):
    data: dict[str, str]


_QUERY_DECODER = msgspec.json.Decoder(_QueryAnswer)
_FLAGS_DECODER = msgspec.json.Decoder(_FlagsAnswer)


class PrometheusClient:
    """Asks one server. Finds out once, and again after each failure, what the server knows about freshness."""

    def __init__(self, session: aiohttp.ClientSession, address: str, timeout_s: float) -> None:
        self._session = session
        self._base = address.rstrip("/")
        self._shown = without_credentials(self._base)
        self._timeout_s = timeout_s
        self._freshness: Freshness = "unknown"
        self._server_lookback_s = 0.0
        self._finding_out = asyncio.Lock()
        self._attempts = 0

    @property
    def freshness(self) -> Freshness:
        """How old samples are kept out; `server` means that the server's own look-back is all there is."""
        return self._freshness

    async def query(self, promql: str, now_s: float, max_age_s: float) -> list[Sample]:
        """The samples that answer an instant query, none of them older than `max_age_s` where the server can tell."""
        try:
            await self._know_freshness()
            params, ahead_s = self._question(promql, now_s, max_age_s)
            reply = await get(self._session, f"{self._base}/api/v1/query", self._timeout_s, params)
            return decode_samples(reply, ahead_s)
        except SourceError as error:
            if not isinstance(error, QueryRefusedError):
                self._freshness = "unknown"  # another server may answer next time
            raise SourceError(f"{self._shown}: {error}") from error

    def _question(self, promql: str, now_s: float, max_age_s: float) -> tuple[dict[str, str], float]:
        params = {"query": promql}
        if self._freshness == "lookback":
            params["lookback_delta"] = f"{max_age_s:.3f}"
        ahead_s = self._server_lookback_s - max_age_s
        if self._freshness == "shifted" and ahead_s > 0 and may_be_asked_ahead(promql):
            params["time"] = f"{now_s + ahead_s:.3f}"
            return params, ahead_s
        return params, 0.0

    async def _know_freshness(self) -> None:
        """One question finds out for all that wait; where it fails, they fail with it instead of asking in turn."""
        attempts = self._attempts
        async with self._finding_out:
            if self._freshness != "unknown":
                return
            if self._attempts != attempts:
                raise SourceError("no answer to an earlier question of this round")
            self._attempts += 1
            await self._find_out()

    async def _find_out(self) -> None:
        """A server that knows `lookback_delta` refuses one that is no duration; others do not look at it."""
        params = {"query": "1", "lookback_delta": "none"}
        probe = await get(self._session, f"{self._base}/api/v1/query", self._timeout_s, params)
        if probe.status == 400:
            self._freshness = "lookback"
            return
        flags = await get(self._session, f"{self._base}/api/v1/status/flags", self._timeout_s)
        try:
            told = _FLAGS_DECODER.decode(flags.body).data["query.lookback-delta"]
            self._server_lookback_s, self._freshness = duration_s(told), "shifted"
        except (msgspec.MsgspecError, KeyError, ValueError):
            self._freshness = "server"


def may_be_asked_ahead(promql: str) -> bool:
    """Whether the query means the same for a moment ahead of now, but for the age of the samples that it sees."""
    return not _BOUND_TO_NOW.search(_STRINGS.sub("", promql))


def node_of(labels: Mapping[str, str]) -> str:
    """The node: the first of the labels node_name, node, Hostname, instance (without its port)."""
    for label in NODE_LABELS:
        name = labels.get(label, "")
        if name:
            return _without_port(name) if label == "instance" else name
    return ""


def _without_port(instance: str) -> str:
    host, colon, port = instance.rpartition(":")
    is_port = bool(colon) and port.isdigit() and (":" not in host or host.endswith("]"))
    return host if is_port else instance


def decode_samples(reply: Reply, ahead_s: float = 0.0) -> list[Sample]:
    """The samples of a vector or scalar; SourceError for anything else."""
    try:
        answer = _QUERY_DECODER.decode(reply.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        if reply.status != 200:
            raise SourceError(f"answered HTTP {reply.status}") from None
        raise SourceError(f"the answer is not that of a query: {one_line(error)}") from None
    if reply.status != 200 or answer.status != "success":
        kind = QueryRefusedError if reply.status < 500 else SourceError
        raise kind(f"refused the query: {one_line(answer.error) or f'HTTP {reply.status}'}")
    match answer.data:
        case _Vector(result=series):
            return [
                Sample(each.metric, _number(each.value[1]), each.value[0] - ahead_s)
                for each in series
                if each.value is not None
            ]
        case _Scalar(result=(at_s, text)):
            return [Sample({}, _number(text), at_s - ahead_s)]
        case _:
            raise SourceError("the query does not give one number for each series")


def _number(text: str) -> float:
    """`NaN`, `+Inf` and `-Inf` are numbers to Prometheus; what is none at all is as good as NaN."""
    try:
        return float(text)
    except ValueError:
        return math.nan
