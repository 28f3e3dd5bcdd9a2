"""Reading and commanding one node over HTTP: deadlines, bounded answers, and each fault as a named error."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Self

import aiohttp
import msgspec
from msgspec import UNSET, Struct, UnsetType

from joulie.devices.interface import (
    BadReadingError,
    DeviceError,
    DeviceFaultError,
    NoDeviceError,
    NoPermissionError,
    NotSupportedError,
    Value,
)
from joulie.egress import NO_REDIRECTS, why_no_answer, why_unreadable
from joulie.errors import without_credentials
from joulie.model.addresses import device_name
from joulie.model.api.hardware import NodeHardwareStatus

CONNECTIONS = 256  # at once, to all endpoints together, so that the others need not wait for some that hang
CONNECTIONS_A_HOST = 64  # one server may stand for thousands of nodes, and has others to answer
FRESH_S = 0.5  # an answer this young is reused: cap, throttle and power come in one
MAX_ANSWER_BYTES = 1 << 20

_OK, _REDIRECTS, _UNAUTHORISED, _FORBIDDEN, _NOT_FOUND = 200, range(300, 400), 401, 403, 404
_NOT_OFFERED = frozenset({405, 501})
_REFUSALS = frozenset({400, 409, 422})


class NoAnswerError(DeviceFaultError):
    """No answer in time; another request to the same node would wait as long again."""


class RefusedError(DeviceFaultError):
    """The endpoint understood the command and refused it; another value may be accepted."""


class _CpuTelemetry(Struct, rename="camel"):
    package_power_watts: float | None = None
    cap_watts: float | UnsetType | None = UNSET
    target_cap_watts: float | UnsetType | None = UNSET
    throttle_pct: float | UnsetType | None = UNSET


class _GpuTelemetry(Struct, rename="camel"):
    present: bool | None = None
    count: int | None = None
    power_watts_total: float | None = None
    cap_watts_per_gpu_target: float | UnsetType | None = UNSET
    cap_watts_per_gpu_applied: float | UnsetType | None = UNSET


class NodeTelemetry(Struct, rename="camel"):
    """`GET /telemetry/{node}`: what is drawn, and the limits that hold."""

    package_power_watts: float | None = None
    cpu: _CpuTelemetry | None = None
    gpu: _GpuTelemetry | None = None

    @property
    def cpu_power_w(self) -> float | None:
        """Of all CPU packages; the top-level value, which may include the GPUs, only as a last resort."""
        if self.cpu is not None and self.cpu.package_power_watts is not None:
            return self.cpu.package_power_watts
        return self.package_power_watts


class _State(Struct):
    hardware: NodeHardwareStatus | None = None


class _ControlReply(Struct):
    result: str


_TELEMETRY = msgspec.json.Decoder(NodeTelemetry)
_STATE = msgspec.json.Decoder(_State)
_ANSWER = msgspec.json.Decoder(_ControlReply)


class HttpClient:
    """The connections that all nodes of one agent share. Opened when first needed, in the running event loop."""

    def __init__(self, connections: int = CONNECTIONS) -> None:
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    async def call(
        self, method: Literal["GET", "POST"], url: str, timeout_s: float, body: bytes | None = None
    ) -> bytes:
        """The body of a 200 answer; every fault is a DeviceError that a person can act on."""
        try:
            headers = {"Content-Type": "application/json"} if body is not None else None
            async with (
                asyncio.timeout(timeout_s),
                self.session().request(
                    method, url, data=body, headers=headers, allow_redirects=NO_REDIRECTS
                ) as response,
            ):
                if response.status == _OK:
                    return await _whole(response)
                status = response.status
        except TimeoutError:
            raise NoAnswerError(f"{method} {without_credentials(url)}: no answer within {timeout_s:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise DeviceFaultError(f"{method} {without_credentials(url)}: {why_no_answer(error)}") from None
        raise _refusal(method, without_credentials(url), status)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=self._connections, limit_per_host=CONNECTIONS_A_HOST, keepalive_timeout=75
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=None),
                trust_env=False,
                auto_decompress=True,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """The answer to its end: a single read returns what has come so far. BadReadingError where it never ends."""
    data = bytearray()
    async for piece in response.content.iter_any():
        data += piece
        if len(data) > MAX_ANSWER_BYTES:
            shown = without_credentials(str(response.url))
            raise BadReadingError(f"{response.method} {shown}: the answer is larger than {MAX_ANSWER_BYTES >> 20} MiB")
    return bytes(data)


def sibling_url(control_url: str, part: Literal["telemetry", "state"]) -> str:
    """Another address of the same node: `…/control/node-1` → `…/state/node-1`; empty where there is no such pattern."""
    head, found, tail = control_url.rpartition("/control/")
    return f"{head}/{part}/{tail}" if found else ""


class HttpNode:
    """One node's addresses. Answers are cached for a moment, because several cappers need the same one.

    `telemetry_url` is used where the control address does not imply one.
    """

    def __init__(
        self,
        client: HttpClient,
        control_url: str,
        *,
        telemetry_url: str = "",
        timeout_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self.device = device_name(control_url)
        self.control_url = control_url
        self.telemetry_url = sibling_url(control_url, "telemetry") or telemetry_url
        self.acknowledged: dict[str, Value] = {}  # by action: the value of the last command that was accepted
        self.state_url = sibling_url(control_url, "state")
        self._client = client
        self._timeout_s = timeout_s
        self._clock = clock
        self._now_s = now_s
        self._telemetry: NodeTelemetry | None = None
        self._asked_at_s = -math.inf
        self._asking = asyncio.Lock()
        self._silence: NoAnswerError | None = None
        self._silent_until_s = -math.inf
        self._hardware: NodeHardwareStatus | None = None
        self._hardware_at_s = -math.inf

    async def telemetry(self) -> NodeTelemetry:
        """What the node says now, or said a moment ago if nothing was written since."""
        async with self._asking:
            if self._telemetry is None or self._clock() - self._asked_at_s > FRESH_S:
                if not self.telemetry_url:
                    raise NotSupportedError(f"{self.device}: no telemetry address is known to read it back from")
                data = await self._call("GET", self.telemetry_url)
                self._telemetry = _telemetry(data, self.telemetry_url)
                self._asked_at_s = self._clock()
            return self._telemetry

    def forget(self) -> None:
        """What was said before is of another boot of the node."""
        self._telemetry = None
        self._hardware_at_s = -math.inf

    async def hardware(self) -> NodeHardwareStatus | None:
        """What `/state` says the node is made of; None where it says nothing."""
        async with self._asking:
            if self._clock() - self._hardware_at_s > FRESH_S:
                self._hardware = await self._ask_hardware()
                self._hardware_at_s = self._clock()
            return self._hardware

    async def _call(self, method: Literal["GET", "POST"], url: str, body: bytes | None = None) -> bytes:
        """A node that just timed out is not waited for again at once: a tick makes several requests."""
        if self._silence is not None and self._clock() < self._silent_until_s:
            raise self._silence
        self._silence = None
        try:
            return await self._client.call(method, url, self._timeout_s, body)
        except NoAnswerError as error:
            self._silence, self._silent_until_s = error, self._clock() + self._timeout_s
            raise

    async def _ask_hardware(self) -> NodeHardwareStatus | None:
        if not self.state_url:
            return None
        try:
            data = await self._call("GET", self.state_url)
        except (NoDeviceError, NotSupportedError):
            return None
        state: _State = _decoded(data, _STATE, self.state_url)
        return state.hardware

    async def control(self, action: str, field: str, value: Value, node: str) -> None:
        """One command, acknowledged when this returns. Whole numbers are sent as integers: some endpoints insist."""
        self._telemetry = None
        number = int(value) if isinstance(value, float) and value.is_integer() else value
        body = {"node": node, "action": action, field: number, "ts": self._now_s()}
        data = await self._call("POST", self.control_url, msgspec.json.encode(body))
        answer = _decoded(data, _ANSWER, self.control_url)
        if answer.result == "applied":
            self.acknowledged[action] = value
            return
        if answer.result == "blocked":
            raise NotSupportedError(f"{self.device}: {action} was answered by: blocked")
        said = "error" if answer.result == "error" else "something other than applied, blocked or error"
        raise RefusedError(f"{self.device}: {action} was answered by: {said}")


def _telemetry(data: bytes, url: str) -> NodeTelemetry:
    """Some servers write NaN, which is not JSON: such a reading is dropped, and the limits still count."""
    try:
        return _TELEMETRY.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        first = error
    try:
        return msgspec.convert(json.loads(data), NodeTelemetry, strict=False)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise _unreadable(url, first) from None


def _decoded(data: bytes, decoder: msgspec.json.Decoder[Any], url: str) -> Any:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(url, error) from None


def _unreadable(url: str, error: Exception) -> BadReadingError:
    return BadReadingError(f"{without_credentials(url)}: the answer cannot be read: {why_unreadable(error)}")


def _refusal(method: str, shown_url: str, status: int) -> DeviceError:
    words = f"{method} {shown_url}: HTTP {status}"
    if status == _NOT_FOUND:
        return NoDeviceError(words)
    if status in (_UNAUTHORISED, _FORBIDDEN):
        return NoPermissionError(words)
    if status in _REDIRECTS:
        return NotSupportedError(f"{words}: redirects are not followed; use the address that it points to")
    if status in _NOT_OFFERED:
        return NotSupportedError(words)
    return RefusedError(words) if status in _REFUSALS else DeviceFaultError(words)
