"""What surrounds an extender, played by one process: an API server whose twins change, and a Prometheus that scrapes.

It sends lists and watches over HTTP as an API server does, so that what is measured is the process that a cluster runs,
without etcd and the API server taking the processors away from it.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from random import Random
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

from bench.clusters import cluster

PAUSE_S = 0.002  # events come one by one
SCRAPE_S = 1.0
PATHS = {
    "/api/v1/nodes": "Node",
    "/api/v1/pods": "Pod",
    "/apis/joulie.io/v1alpha1/nodehardwares": "NodeHardware",
    "/apis/joulie.io/v1alpha1/nodetwins": "NodeTwin",
}


class Feed:
    """A cluster of so many nodes whose twins are all fresh, and changes to them."""

    def __init__(self, nodes: int, events_per_s: float) -> None:
        self._events_per_s = events_per_s
        self._objects: dict[str, list[dict[str, Any]]] = {kind: [] for kind in PATHS.values()}
        for item in cluster(nodes, 0):
            self._objects[item["kind"]].append(item)
        for twin in self._objects["NodeTwin"]:
            twin["status"]["lastUpdated"] = _now()
        self._rng = Random(2)
        self.watched = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        kind = PATHS[request.path]
        if "watch" not in request.query:
            body = {"kind": f"{kind}List", "metadata": {"resourceVersion": "1"}, "items": self._objects[kind]}
            return web.Response(body=msgspec.json.encode(body), content_type="application/json")
        stream = web.StreamResponse()
        await stream.prepare(request)
        self.watched.set()
        await self._tell(stream, self._events_per_s if kind == "NodeTwin" else 0.0)
        return stream

    async def _tell(self, stream: web.StreamResponse, events_per_s: float) -> None:
        began_s, sent = time.monotonic(), 0
        while True:
            await asyncio.sleep(PAUSE_S if events_per_s else SCRAPE_S)
            due = int((time.monotonic() - began_s) * events_per_s)
            if due > sent:
                await stream.write(b"".join(self._change(number) for number in range(sent, due)))
                sent = due

    def _change(self, number: int) -> bytes:
        """Another measurement of some node."""
        twin = self._rng.choice(self._objects["NodeTwin"])
        twin["metadata"]["resourceVersion"] = str(number + 2)
        status = twin["status"]
        status["powerMeasurement"]["measuredNodePowerW"] = 400.0 + self._rng.random() * 400
        status["lastUpdated"] = _now()
        return msgspec.json.encode({"type": "MODIFIED", "object": twin}) + b"\n"


async def scrape(url: str) -> None:
    """As Prometheus does, for ever."""
    async with aiohttp.ClientSession() as session:
        while True:
            await asyncio.sleep(SCRAPE_S)
            async with session.get(url) as answer:
                answer.raise_for_status()
                await answer.read()


async def run(feed: Feed, port: int, scraped: str) -> None:
    app = web.Application()
    app.router.add_routes([web.get(path, feed.answer) for path in PATHS])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await feed.watched.wait()  # a process that watches also serves its metrics
    await (scrape(scraped) if scraped else asyncio.Event().wait())


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.twin_feed", description=__doc__)
    parser.add_argument("nodes", type=int)
    parser.add_argument("events_per_s", type=float)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--scrape", default="", metavar="URL")
    given = parser.parse_args()
    asyncio.run(run(Feed(given.nodes, given.events_per_s), given.port, given.scrape))


if __name__ == "__main__":
    main()
