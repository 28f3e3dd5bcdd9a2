"""The HTTP interface of the simulated hardware (docs/reference/behaviour.md, 'Simulator HTTP API')."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web

from joulie.serving import Check, Page, Share, checked
from joulie.simulator import views
from joulie.simulator.control import Reply, decode_command
from joulie.simulator.faults import decode_fault
from joulie.simulator.metrics import MetricsPage
from joulie.simulator.prometheus_query import answer
from joulie.simulator.simulation import Simulation

NodeView = Callable[[Simulation, int], dict[str, Any]]


def simulator_routes(
    simulation: Simulation, *, healthy: Check = lambda: None, ready: Check = lambda: None
) -> list[web.RouteDef]:
    """The process that serves them steps the simulation."""
    return _Api(simulation, healthy, ready).routes()


class _Api:
    def __init__(self, simulation: Simulation, healthy: Check, ready: Check) -> None:
        self._simulation = simulation
        self._healthy = healthy
        self._ready = ready
        self._metrics = Page(MetricsPage(simulation).pieces)
        self._share = Share()

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/telemetry/{node}", self._of_node(self._telemetry)),
            web.post("/control/{node}", self._of_node(self._control)),
            web.get("/state/{node}", self._of_node(self._state)),
            web.get("/metrics", self._page),
            web.get("/healthz", checked(self._healthy)),
            web.get("/readyz", checked(self._ready)),
            web.get("/api/v1/query", self._shared(self._query)),
            web.get("/debug/nodes", self._shared(self._all_nodes)),
            web.get("/debug/events", self._shared(self._events)),
            web.get("/debug/energy", self._shared(self._energy)),
            web.get("/debug/faults", self._shared(self._faults)),
            web.post("/debug/faults/{node}", self._put_fault),
        ]

    def _of_node(self, handler: Callable[[str, web.Request], Awaitable[web.Response]]) -> Any:
        """A route that a node answers itself: it may be unknown, gone or slow."""

        async def answered(request: web.Request) -> web.Response:
            name, simulation = request.match_info["node"], self._simulation
            simulation.settle_changes()
            if name not in simulation.index:
                return _wrong(404, f"node {name[:253]!a} is not simulated")
            gone = simulation.faults.get(name, "gone", simulation.clock())
            if gone is not None:
                if gone.how == "closed" and request.transport is not None:
                    request.transport.close()
                return _wrong(503, "fault on demand: the node is gone")
            slow = simulation.faults.get(name, "slow", simulation.clock())
            if slow is not None:
                await asyncio.sleep(slow.delay_seconds)
                if name not in simulation.index:
                    return _wrong(404, f"node {name[:253]!a} is not simulated")
            return await handler(name, request)

        return answered

    def _shared(self, handler: Callable[[web.Request], Awaitable[web.Response]]) -> Any:
        """A route that looks at all nodes: it leaves time for the nodes' own answers."""

        async def answered(request: web.Request) -> web.Response:
            began_s = time.monotonic()
            if self._share.is_used_up(began_s):
                response = _wrong(503, "too many questions at once")
                response.headers["Retry-After"] = "1"
                return response
            response = await handler(request)
            self._share.use(began_s, time.monotonic() - began_s)
            return response

        return answered

    async def _telemetry(self, name: str, _: web.Request) -> web.Response:
        simulation = self._simulation
        truth = views.telemetry(simulation, simulation.index[name])
        told = simulation.faults.told(name, truth, simulation.clock())
        # A liar may say NaN, which msgspec would write as null.
        return _json(told) if told is truth else web.Response(text=json.dumps(told), content_type="application/json")

    async def _control(self, name: str, request: web.Request) -> web.Response:
        data = await request.read()
        try:
            command = decode_command(data, name)
        except ValueError as error:
            return _json(Reply("error", str(error)), status=400)
        if name not in self._simulation.index:  # it left while its command came
            return _wrong(404, f"node {name[:253]!a} is not simulated")
        return _json(self._simulation.command(name, command))

    async def _state(self, name: str, _: web.Request) -> web.Response:
        return _json(views.state(self._simulation, self._simulation.index[name]))

    async def _page(self, _: web.Request) -> web.StreamResponse:
        return await self._metrics.answer()

    async def _query(self, request: web.Request) -> web.Response:
        asked = request.query
        try:
            if "query" not in asked:
                raise ValueError("query: missing")
            found = answer(self._simulation, asked["query"], asked.get("lookback_delta"), self._simulation.clock())
        except ValueError as error:
            return _json({"status": "error", "errorType": "bad_data", "error": str(error)}, status=400)
        return _json({"status": "success", "data": found})

    async def _all_nodes(self, _: web.Request) -> web.Response:
        self._simulation.settle_changes()
        return _json(views.all_nodes(self._simulation))

    async def _events(self, _: web.Request) -> web.Response:
        return _json(list(self._simulation.events))

    async def _energy(self, _: web.Request) -> web.Response:
        return _json(views.all_energy(self._simulation))

    async def _faults(self, _: web.Request) -> web.Response:
        return _json(self._simulation.faults.listed(self._simulation.clock()))

    async def _put_fault(self, request: web.Request) -> web.Response:
        name = request.match_info["node"]
        data = await request.read()
        self._simulation.settle_changes()
        try:
            fault = decode_fault(data)
        except ValueError as error:
            return _wrong(400, str(error))
        if name not in self._simulation.index:
            return _wrong(404, f"node {name[:253]!a} is not simulated")
        self._simulation.put_fault(name, fault)
        return await self._faults(request)


def _json(body: Any, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), status=status, content_type="application/json")


def _wrong(status: int, message: str) -> web.Response:
    return _json({"error": message}, status)
