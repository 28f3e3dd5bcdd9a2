"""Devices behind HTTP: what is asked, what is sent, and what each fault is called."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from joulie.devices.http.capper import HttpCapper, HttpGpus, HttpThrottle, HttpWatts
from joulie.devices.http.client import HttpClient, HttpNode
from joulie.devices.interface import (
    BadReadingError,
    DeviceError,
    DeviceFaultError,
    NoDeviceError,
    NoPermissionError,
    NotSupportedError,
)
from tests.agent.world import scenario

HARDWARE = {
    "cpu": {"model": "EPYC 9654", "sockets": 2, "capRange": {"minWattsPerSocket": 150, "maxWattsPerSocket": 360}},
    "gpu": {"present": True, "model": "H100 SXM", "count": 4, "capRangePerGpu": {"minWatts": 200, "maxWatts": 700}},
}
HEARD = {
    "packagePowerWatts": 300.5,
    "cpu": {"capWatts": None, "throttlePct": 0},
    "gpu": {
        "present": True,
        "count": 4,
        "powerWattsTotal": 900,
        "capWattsPerGpuTarget": None,
        "capWattsPerGpuApplied": 700,
    },
}


class Endpoint:
    """A node that answers as it is told."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.commands: list[dict[str, Any]] = []
        self.telemetry: Any = HEARD
        self.state: Any = {"hardware": HARDWARE}
        self.answer: dict[str, Any] = {"result": "applied"}
        self.status = 200
        self.wait_s = 0.0
        self.pieces = 0  # so many parts of an answer, a moment apart

    async def get(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.match_info["part"])
        await asyncio.sleep(self.wait_s)
        body = self.state if request.match_info["part"] == "state" else self.telemetry
        if self.pieces:
            return await _in_pieces(request, body, self.pieces)
        if isinstance(body, str):
            return web.Response(text=body, status=self.status, content_type="application/json")
        return web.json_response(body, status=self.status)

    async def post(self, request: web.Request) -> web.Response:
        self.commands.append(await request.json())
        await asyncio.sleep(self.wait_s)
        return web.json_response(self.answer, status=self.status)


async def _in_pieces(request: web.Request, body: Any, pieces: int) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    data = json.dumps(body).encode()
    size = -(-len(data) // pieces)
    for start in range(0, len(data), size):
        await answer.write(data[start : start + size])
        await asyncio.sleep(0.05)
    return answer


@asynccontextmanager
async def _served(timeout_s: float = 5.0) -> AsyncIterator[tuple[Endpoint, HttpNode]]:
    endpoint = Endpoint()
    app = web.Application()
    app.router.add_get("/{part}/a", endpoint.get)
    app.router.add_post("/control/a", endpoint.post)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    url = f"http://{host}:{port}"
    try:
        async with HttpClient() as client:
            yield (
                endpoint,
                HttpNode(client, f"{url}/control/a", timeout_s=timeout_s),
            )
    finally:
        await runner.cleanup()


def _play(script: Callable[[Endpoint, HttpNode], Awaitable[None]], timeout_s: float = 5.0) -> None:
    async def whole() -> None:
        async with _served(timeout_s) as (endpoint, at):
            await script(endpoint, at)

    scenario(whole())


def test_hardware_is_discovered_from_state_and_one_answer_serves_all_cappers() -> None:
    async def script(endpoint: Endpoint, at: HttpNode) -> None:
        watts, throttle, gpus = HttpWatts(at, "a"), HttpThrottle(at, "a"), HttpGpus(at, "a")
        found = [await capper.discover() for capper in (watts, throttle, gpus)]
        assert [(each.present, each.count, each.max_w) for each in found] == [
            (True, 2, 360),
            (True, 2, 360),
            (True, 4, 700),
        ]
        assert [each.quality for each in found] == ["exact"] * 3
        assert await watts.power_w() == 300.5
        assert await gpus.power_w() == 900
        (knob,) = await watts.knobs()
        assert await watts.read(knob) is None
        assert sorted(endpoint.asked) == ["state", "telemetry"]

    _play(script)


def test_a_cap_is_sent_as_the_interface_wants_it_and_restoring_takes_it_away() -> None:
    async def script(endpoint: Endpoint, at: HttpNode) -> None:
        cappers = {HttpWatts(at, "a"): 500.0, HttpThrottle(at, "a"): 40.0, HttpGpus(at, "a"): 420.0}
        for capper, target in cappers.items():
            await capper.discover()
            found = dict.fromkeys(await capper.knobs(), 123.0)  # another agent's cap: it does not come back
            for setting in (*capper.settings(target, found), *capper.restoring(found)):
                await capper.write(setting.knob, setting.value)
        sent = [{key: value for key, value in command.items() if key != "ts"} for command in endpoint.commands]
        assert sent == [
            {"node": "a", "action": "rapl.set_power_cap_watts", "capWatts": 500.0},
            {"node": "a", "action": "rapl.set_power_cap_watts", "capWatts": None},
            {"node": "a", "action": "dvfs.set_throttle_pct", "throttlePct": 40.0},
            {"node": "a", "action": "dvfs.set_throttle_pct", "throttlePct": 0.0},
            {"node": "a", "action": "gpu.set_power_cap_watts", "capWattsPerGpu": 420.0},
            {"node": "a", "action": "gpu.set_power_cap_watts", "capWattsPerGpu": None},
        ]

    _play(script)


def test_without_a_limit_a_device_holds_its_own_maximum_however_much_was_asked_for() -> None:
    async def script(_: Endpoint, at: HttpNode) -> None:
        for capper, maximum_w in ((HttpWatts(at, "a"), 720), (HttpGpus(at, "a"), 700)):
            await capper.discover()
            found = dict.fromkeys(await capper.knobs())
            wanted = {setting.knob: setting.value for setting in capper.settings(5000.0, found)}
            assert capper.held(wanted, found) == maximum_w

    _play(script)


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_whatever_is_asked_for_stays_inside_the_range(target: float) -> None:
    async def discovered() -> list[HttpCapper]:
        async with _served() as (_, at):
            cappers: list[HttpCapper] = [HttpWatts(at, "a"), HttpThrottle(at, "a"), HttpGpus(at, "a")]
            for capper in cappers:
                await capper.discover()
            return cappers

    if not _CAPPERS:
        _CAPPERS.extend(asyncio.run(discovered()))
    for capper, (low, high) in zip(_CAPPERS, ((300, 720), (0, 100), (200, 700)), strict=True):
        knobs = asyncio.run(capper.knobs())
        (setting,) = capper.settings(target, dict.fromkeys(knobs))
        assert setting.value is None or low <= setting.value <= high
        if not math.isfinite(target) or (capper.unit != "throttle_pct" and target >= high):
            assert setting.value == capper.released


_CAPPERS: list[HttpCapper] = []


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (404, NoDeviceError),
        (401, NoPermissionError),
        (403, NoPermissionError),
        (405, NotSupportedError),
        (501, NotSupportedError),
        (500, DeviceFaultError),
        (503, DeviceFaultError),
        (400, DeviceFaultError),
    ],
)
def test_a_refusal_has_a_name_and_says_what_was_answered(status: int, kind: type[DeviceError]) -> None:
    async def script(endpoint: Endpoint, at: HttpNode) -> None:
        endpoint.status = status
        capper = HttpWatts(at, "a")
        (knob,) = await capper.knobs()
        with pytest.raises(kind, match=f"HTTP {status}"):
            await capper.read(knob)
        with pytest.raises(kind, match=f"HTTP {status}"):
            await capper.write(knob, 300)
        found = await capper.discover()
        assert not found.present
        assert found.no_control is not None
        assert str(status) in found.no_control

    _play(script)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"result": "blocked", "message": "locked by firmware"}, NotSupportedError),
        ({"result": "error", "message": "locked by firmware"}, DeviceFaultError),
        ({"message": "locked by firmware"}, BadReadingError),
    ],
)
def test_whether_the_device_refused_or_failed_is_told_and_its_words_are_not(
    answer: dict[str, Any], kind: type[DeviceError]
) -> None:
    async def script(endpoint: Endpoint, at: HttpNode) -> None:
        endpoint.answer = answer
        capper = HttpWatts(at, "a")
        (knob,) = await capper.knobs()
        with pytest.raises(kind) as failure:
            await capper.write(knob, 300)
        assert "locked by firmware" not in str(failure.value)
        assert "\n" not in str(failure.value)

    _play(script)


def test_a_node_that_hangs_is_waited_for_once_and_not_for_every_question() -> None:
    async def script(endpoint: Endpoint, at: HttpNode) -> None:
        endpoint.wait_s = 30
        capper = HttpWatts(at, "a")
        began_s = asyncio.get_running_loop().time()
        assert (await capper.discover()).no_control is not None
        (knob,) = await capper.knobs()
        for _ in range(5):
            with pytest.raises(DeviceFaultError, match="no answer within"):
                await capper.read(knob)
            with pytest.raises(DeviceFaultError, match="no answer within"):
                await capper.write(knob, 300)
        assert asyncio.get_running_loop().time() - began_s < 5 * 0.5
        endpoint.wait_s = 0
        await asyncio.sleep(0.6)
        assert await capper.read(knob) is None

    _play(script, timeout_s=0.5)


@pytest.mark.parametrize(
    ("body", "power_w"),
    [
        ('{"packagePowerWatts": NaN, "cpu": {"capWatts": 300, "throttlePct": 0}}', math.nan),
        ('{"cpu": {"packagePowerWatts": 250, "capWatts": 300, "throttlePct": 0}}', 250),
        ('{"packagePowerWatts": "250", "cpu": {"capWatts": 300, "throttlePct": 0}}', 250),
        ('{"packagePowerWatts": 900, "cpu": {"packagePowerWatts": 250, "capWatts": 300}}', 250),
    ],
)
def test_a_reading_in_any_of_its_forms_is_understood_and_a_bad_one_costs_only_itself(body: str, power_w: float) -> None:
    async def script(endpoint: Endpoint, at: HttpNode) -> None:
        endpoint.telemetry = body
        capper = HttpWatts(at, "a")
        (knob,) = await capper.knobs()
        assert await capper.read(knob) == 300
        read = await capper.power_w()
        assert read is not None
        assert read == power_w or math.isnan(read) is math.isnan(power_w)

    _play(script)


def test_an_answer_that_comes_in_pieces_is_read_to_its_end() -> None:
    async def script(endpoint: Endpoint, at: HttpNode) -> None:
        endpoint.pieces = 3
        capper = HttpWatts(at, "a")
        found = await capper.discover()
        assert (found.present, found.max_w) == (True, 360)
        assert await capper.power_w() == 300.5

    _play(script)


def test_an_answer_without_end_is_a_bad_reading() -> None:
    async def script(endpoint: Endpoint, at: HttpNode) -> None:
        endpoint.telemetry = {**HEARD, "more": "x" * (2 << 20)}
        capper = HttpWatts(at, "a")
        (knob,) = await capper.knobs()
        with pytest.raises(BadReadingError, match="larger than 1 MiB"):
            await capper.read(knob)

    _play(script)


@pytest.mark.parametrize("body", ["", "[]", "nonsense", '{"cpu": 3}', '{"cpu": {"capWatts": {}}}', "[" * 100_000])
def test_an_answer_that_is_none_is_a_bad_reading_and_never_an_exception_of_another_kind(body: str) -> None:
    async def script(endpoint: Endpoint, at: HttpNode) -> None:
        endpoint.telemetry = body
        capper = HttpWatts(at, "a")
        (knob,) = await capper.knobs()
        with pytest.raises(BadReadingError):
            await capper.read(knob)
        assert not (await capper.discover()).present

    _play(script)


def test_hardware_that_cannot_be_read_is_a_warning_and_control_goes_on() -> None:
    async def script(endpoint: Endpoint, at: HttpNode) -> None:
        endpoint.state = {"hardware": {"cpu": {"sockets": "two"}}}
        found = await HttpWatts(at, "a").discover()
        assert (found.present, found.no_control, found.max_w) == (True, None, None)
        assert "sockets" in found.warnings[0]

    _play(script)


def test_a_node_without_gpus_has_none() -> None:
    async def script(endpoint: Endpoint, at: HttpNode) -> None:
        endpoint.telemetry = {"packagePowerWatts": 100, "gpu": {"present": False, "count": 0}}
        endpoint.state = {"hardware": {"cpu": {"sockets": 2}}}
        found = await HttpGpus(at, "a").discover()
        assert (found.present, found.no_control) == (False, "the node has no GPU")

    _play(script)
