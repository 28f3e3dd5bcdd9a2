"""Asking and commanding one node over HTTP (SPEC 8): deadlines, bounded answers, and each fault as a named error."""

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
from joulie.model.api.hardware import NodeHardwareStatus

CONNECTIONS = 256  # at once, to all endpoints together: some may hang, and the others are not to wait for them
FRESH_S = 0.5  # an answer this young still holds: cap, throttle and power come in one
LARGEST_ANSWER = 1 << 20
LONGEST_REASON = 200

_OK, _UNAUTHORISED, _FORBIDDEN, _NOT_FOUND = 200, 401, 403, 404
_NOT_OFFERED = frozenset({405, 501})


class NoAnswerError(DeviceFaultError):
    """Nothing came in time; whoever asks the same node right away would wait as long again."""


class _Cpu(Struct, rename="camel"):
    package_power_watts: float | None = None
    cap_watts: float | None = None
    throttle_pct: float | None = None


class _Gpu(Struct, rename="camel"):
    present: bool | None = None
    count: int | None = None
    power_watts_total: float | None = None
    cap_watts_per_gpu_target: float | UnsetType | None = UNSET
    cap_watts_per_gpu_applied: float | None = None


class Telemetry(Struct, rename="camel"):
    """`GET /telemetry/{node}`: what is drawn, and the limits that hold."""

    package_power_watts: float | None = None
    cpu: _Cpu | None = None
    gpu: _Gpu | None = None

    @property
    def cpu_power_w(self) -> float | None:
        """Of the CPU packages together; the top-level name wins."""
        if self.package_power_watts is not None or self.cpu is None:
            return self.package_power_watts
        return self.cpu.package_power_watts


class _State(Struct):
    hardware: NodeHardwareStatus | None = None


class _Answer(Struct):
    result: str
    message: str | None = None


_TELEMETRY = msgspec.json.Decoder(Telemetry)
_STATE = msgspec.json.Decoder(_State)
_ANSWER = msgspec.json.Decoder(_Answer)


class HttpClient:
    """The connections that all nodes of one agent share. Opened when first needed, in the running event loop."""

    def __init__(self, connections: int = CONNECTIONS) -> None:
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    async def call(
        self, method: Literal["GET", "POST"], url: str, timeout_s: float, body: bytes | None = None
    ) -> bytes:
        """The body of a good answer; every fault is one DeviceError that says what a person can act on."""
        try:
            headers = {"Content-Type": "application/json"} if body is not None else None
            async with (
                asyncio.timeout(timeout_s),
                self.session().request(method, url, data=body, headers=headers) as response,
            ):
                data = await response.content.read(LARGEST_ANSWER)
                if response.status == _OK:
                    return data
                status = response.status
        except TimeoutError:
            raise NoAnswerError(f"{method} {url}: no answer within {timeout_s:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise DeviceFaultError(f"{method} {url}: {_one_line(error) or type(error).__name__}") from None
        raise _refusal(method, url, status, data)

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
            connector = aiohttp.TCPConnector(limit=self._connections, keepalive_timeout=75)
            self._session = aiohttp.ClientSession(
                connector=connector, timeout=aiohttp.ClientTimeout(total=None), trust_env=False, auto_decompress=True
            )
        return self._session


class HttpNode:
    """One node's addresses. What they answer is remembered for a moment, because several ask for the same."""

    def __init__(
        self,
        client: HttpClient,
        control_url: str,
        *,
        telemetry_url: str = "",
        state_url: str = "",
        timeout_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self.control_url = control_url
        self.telemetry_url = telemetry_url
        self.state_url = state_url
        self._client = client
        self._timeout_s = timeout_s
        self._clock = clock
        self._now_s = now_s
        self._telemetry: Telemetry | None = None
        self._asked_at_s = -math.inf
        self._asking = asyncio.Lock()
        self._silence: NoAnswerError | None = None
        self._silent_until_s = -math.inf
        self._hardware: NodeHardwareStatus | None = None
        self._hardware_at_s = -math.inf

    async def telemetry(self) -> Telemetry:
        """What the node says now, or said a moment ago if nothing was written since."""
        async with self._asking:
            if self._telemetry is None or self._clock() - self._asked_at_s > FRESH_S:
                if not self.telemetry_url:
                    raise NotSupportedError(f"{self.control_url}: no telemetry address is known to read it back from")
                data = await self._call("GET", self.telemetry_url)
                self._telemetry = _telemetry(data, self.telemetry_url)
                self._asked_at_s = self._clock()
            return self._telemetry

    async def hardware(self) -> NodeHardwareStatus | None:
        """What `/state` says the node is made of; None where it says nothing."""
        async with self._asking:
            if self._clock() - self._hardware_at_s > FRESH_S:
                self._hardware = await self._ask_hardware()
                self._hardware_at_s = self._clock()
            return self._hardware

    async def _call(self, method: Literal["GET", "POST"], url: str, body: bytes | None = None) -> bytes:
        """A node that just kept us waiting is not waited for again at once: a tick asks it several things."""
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
        """One command; `blocked` and `error` are raised with the device's own words."""
        self._telemetry = None
        body = {"node": node, "action": action, field: value, "ts": self._now_s()}
        data = await self._call("POST", self.control_url, msgspec.json.encode(body))
        answer = _decoded(data, _ANSWER, self.control_url)
        if answer.result == "applied":
            return
        words = f"{self.control_url}: {action}: {_one_line(answer.message or 'no reason given')}"
        raise NotSupportedError(words) if answer.result == "blocked" else DeviceFaultError(words)


def _telemetry(data: bytes, url: str) -> Telemetry:
    """Some writers put NaN into JSON, which JSON does not know: such a reading is dropped, the limits still count."""
    try:
        return _TELEMETRY.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        first = error
    try:
        return msgspec.convert(json.loads(data), Telemetry, strict=False)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise BadReadingError(f"{url}: the answer cannot be read: {_one_line(first)}") from None


def _decoded(data: bytes, decoder: msgspec.json.Decoder[Any], url: str) -> Any:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadReadingError(f"{url}: the answer cannot be read: {_one_line(error)}") from None


def _refusal(method: str, url: str, status: int, data: bytes) -> DeviceError:
    said = _one_line(data[:LONGEST_REASON].decode(errors="replace"))
    words = f"{method} {url}: HTTP {status}" + (f": {said}" if said else "")
    if status == _NOT_FOUND:
        return NoDeviceError(words)
    if status in (_UNAUTHORISED, _FORBIDDEN):
        return NoPermissionError(words)
    return NotSupportedError(words) if status in _NOT_OFFERED else DeviceFaultError(words)


def _one_line(text: object) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"
