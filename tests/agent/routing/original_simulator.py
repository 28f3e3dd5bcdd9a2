"""A stand-in for the simulator of the Go original, as strict as that one is; and it can be down, or want a password."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

CPU_W, GPU_W = 250.0, 900.0  # what the machine draws
MAX_W, GPU_MAX_W = 720.0, 700.0


class OriginalNode:
    """One machine: a null CPU cap is taken and ignored, a null GPU cap refused, a throttle that is no integer, too."""

    def __init__(self) -> None:
        self.url = ""
        self.commands: list[dict[str, Any]] = []
        self.cap_w = MAX_W
        self.throttle_pct = 0
        self.gpu_cap_w = GPU_MAX_W
        self.tells_targets = True
        self.settle_looks = 3  # so many looks show a limit on its way to where it was sent
        self.password = ""
        self.control_status = 200  # what a wrong path answers
        self.redirect_to = ""
        self.down = False
        self._on_its_way: list[float] = []

    async def telemetry(self, request: web.Request) -> web.StreamResponse:
        self._check(request)
        shown_w = self._on_its_way.pop(0) if self._on_its_way else self.cap_w
        cpu = {"packagePowerWatts": CPU_W, "capWatts": shown_w, "throttlePct": self.throttle_pct}
        gpu = {"present": True, "count": 4, "powerWattsTotal": GPU_W, "capWattsPerGpuApplied": self.gpu_cap_w}
        if self.tells_targets:
            cpu["targetCapWatts"] = self.cap_w
            gpu["capWattsPerGpuTarget"] = self.gpu_cap_w
        return web.json_response({"packagePowerWatts": CPU_W + GPU_W, "cpu": cpu, "gpu": gpu})

    async def control(self, request: web.Request) -> web.StreamResponse:
        self._check(request)
        if self.redirect_to:
            raise web.HTTPTemporaryRedirect(self.redirect_to)
        if self.control_status != 200:
            return web.Response(status=self.control_status, text="the body of a foreign answer")
        command = json.loads(await request.text())
        self.commands.append(command)
        match command["action"]:
            case "rapl.set_power_cap_watts":
                if command["capWatts"] is not None:
                    step_w = (command["capWatts"] - self.cap_w) / (self.settle_looks + 1)
                    self._on_its_way = [self.cap_w + step_w * (look + 1) for look in range(self.settle_looks)]
                    self.cap_w = float(command["capWatts"])
            case "dvfs.set_throttle_pct":
                if not isinstance(command["throttlePct"], int):
                    return web.Response(status=400, text="json: cannot unmarshal number into Go value of type int")
                self.throttle_pct = command["throttlePct"]
            case "gpu.set_power_cap_watts":
                if command["capWattsPerGpu"] is None:
                    return web.json_response({"result": "error", "message": "capWattsPerGpu must be > 0"})
                self.gpu_cap_w = float(command["capWattsPerGpu"])
        return web.json_response({"result": "applied", "message": "", "state": {}})

    def _check(self, request: web.Request) -> None:
        if self.down and request.transport is not None:
            request.transport.abort()
            raise web.HTTPServiceUnavailable
        if self.password:
            expected = "Basic " + base64.b64encode(f"joulie:{self.password}".encode()).decode()
            if request.headers.get("Authorization") != expected:
                raise web.HTTPUnauthorized


@asynccontextmanager
async def original_node(name: str = "a") -> AsyncIterator[OriginalNode]:
    node = OriginalNode()
    app = web.Application()
    app.router.add_get(f"/telemetry/{name}", node.telemetry)
    app.router.add_post(f"/control/{name}", node.control)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    node.url = f"http://{host}:{port}"
    try:
        yield node
    finally:
        await runner.cleanup()
        await asyncio.sleep(0)
