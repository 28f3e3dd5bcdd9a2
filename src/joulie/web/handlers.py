"""The routes: the page, its files, and a read-only API under /api/v1."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from joulie.model.snapshot import Pod
from joulie.overview.findings import node_findings
from joulie.overview.fit import misfits
from joulie.serving import Share
from joulie.web.answers import cluster_document, find_pods, pod_document, pod_line, rack_lines
from joulie.web.assets import Asset, assets
from joulie.web.guarding import HEADERS, Handler, guarded

if TYPE_CHECKING:
    from joulie.web.dashboard import Dashboard

PODS_OF_A_NODE = 200
MAX_LINES = 500
COMPRESSED_FROM_BYTES = 1024


class Handlers:
    """One handler a route; all of them only read."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard
        self._share = Share()

    def routes(self) -> list[web.RouteDef]:
        files: Sequence[tuple[str, Handler]] = (("/", self._page), ("/static/{name}", self._file))
        api: Sequence[tuple[str, Handler]] = (
            ("/api/v1/cluster", self._cluster),
            ("/api/v1/budgets", self._budgets),
            ("/api/v1/nodes", self._nodes),
            ("/api/v1/nodes/{node}", self._node),
            ("/api/v1/pods", self._pods),
            ("/api/v1/pods/{namespace}/{name}", self._pod),
            ("/api/v1/changes", self._changes),
            ("/api/v1/stream", self._stream),
        )
        found = [*files, *((path, self._having_looked(handler)) for path, handler in api)]
        return [web.get(path, guarded(handler, self._dashboard.hosts)) for path, handler in found]

    def _having_looked(self, handler: Handler) -> Handler:
        """The handler, with what is seen now; it says so where it is too early."""

        async def answer(request: web.Request) -> web.StreamResponse:
            if not self._dashboard.ready:
                return _later("not all objects are known yet")
            began_s = time.monotonic()
            if self._share.is_used_up(began_s):
                return _later("too many questions at once")
            self._dashboard.look()
            if handler == self._stream:  # it lasts, and costs little
                return await handler(request)
            response = await handler(request)
            self._share.use(began_s, time.monotonic() - began_s)
            return response

        return answer

    async def _page(self, request: web.Request) -> web.StreamResponse:
        return _asset(request, assets()["index.html"])

    async def _file(self, request: web.Request) -> web.StreamResponse:
        asset = assets().get(request.match_info["name"])
        return _no("there is no such file") if asset is None else _asset(request, asset)

    async def _cluster(self, request: web.Request) -> web.StreamResponse:
        dashboard = self._dashboard
        cluster = dashboard.scene.cluster
        history = dashboard.history.of_cluster()
        return _json(request, {**cluster_document(cluster), "racks": rack_lines(cluster), "history": history})

    async def _budgets(self, request: web.Request) -> web.StreamResponse:
        dashboard = self._dashboard
        cluster = dashboard.scene.cluster
        history = dashboard.history.of_groups()
        return _json(request, {"nowS": cluster.now_s, "budgets": cluster.budgets, "history": history})

    async def _nodes(self, request: web.Request) -> web.StreamResponse:
        return _json(request, self._dashboard.scene.columns)

    async def _node(self, request: web.Request) -> web.StreamResponse:
        dashboard, name = self._dashboard, request.match_info["node"]
        view = dashboard.scene.views.get(name)
        if view is None:
            return _no("there is no such node")
        label = dashboard.settings.decision.plan.power_profile_label
        document: dict[str, Any] = msgspec.to_builtins(view)
        document |= {
            "pinWaits": view.pin_waits,
            "agentAtS": view.agent_at_s,
            "nowS": dashboard.scene.cluster.now_s,
            "reason": dashboard.why(name),
            "decisionEveryS": dashboard.settings.decision.plan.reconcile_interval_s,
            "attention": list(node_findings(view, dashboard.scene.cluster.now_s, dashboard.scene.limits)),
            "changes": [line for line in dashboard.changes.lines(MAX_LINES) if line.node == name][:20],
            "history": dashboard.history.of_node(name),
            "podList": find_pods(dashboard.snapshot.pods, label, node=name, text="", offset=0, limit=PODS_OF_A_NODE),
        }
        return _json(request, document)

    async def _pods(self, request: web.Request) -> web.StreamResponse:
        dashboard = self._dashboard
        offset, limit = _paging(request)
        found = find_pods(
            dashboard.snapshot.pods,
            dashboard.settings.decision.plan.power_profile_label,
            node=request.query.get("node", ""),
            text=request.query.get("q", ""),
            offset=offset,
            limit=limit,
        )
        return _json(request, found)

    async def _pod(self, request: web.Request) -> web.StreamResponse:
        dashboard = self._dashboard
        snapshot = dashboard.snapshot
        pod = _find(snapshot.pods, request.match_info["namespace"], request.match_info["name"])
        if pod is None:
            return _no("there is no such pod")
        offset, limit = _paging(request)
        scores = pod_document(dashboard.score_table(), pod, misfits(snapshot, pod), offset, limit)
        label = dashboard.settings.decision.plan.power_profile_label
        return _json(request, {**pod_line(pod, label), "finished": pod.finished, **scores})

    async def _changes(self, request: web.Request) -> web.StreamResponse:
        return _json(request, self._dashboard.changes.lines(MAX_LINES))

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        headers = {**HEADERS, "Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
        return await self._dashboard.feed.serve(request, headers)


def _asset(request: web.Request, asset: Asset) -> web.Response:
    headers = {**HEADERS, "ETag": asset.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if asset.tag in request.headers.get("If-None-Match", ""):
        return web.Response(status=304, headers=headers)
    headers["Content-Type"] = asset.content_type
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return web.Response(body=asset.packed, headers={**headers, "Content-Encoding": "gzip"})
    return web.Response(body=asset.body, headers=headers)


def _json(request: web.Request, document: Any) -> web.Response:
    """Compressed here and not while it is sent: then it counts as the API's share of the process."""
    body = msgspec.json.encode(document)
    headers = {**HEADERS, "Content-Type": "application/json", "Cache-Control": "no-store"}
    if len(body) > COMPRESSED_FROM_BYTES and "gzip" in request.headers.get("Accept-Encoding", ""):
        return web.Response(body=gzip.compress(body, 3, mtime=0), headers={**headers, "Content-Encoding": "gzip"})
    return web.Response(body=body, headers=headers)


def _later(text: str) -> web.Response:
    return web.Response(status=503, text=text + "\n", headers={**HEADERS, "Retry-After": "1"})


def _no(text: str) -> web.Response:
    return web.Response(status=404, text=text + "\n", headers=HEADERS)


def _paging(request: web.Request) -> tuple[int, int]:
    """`offset` and `limit` of the query; nonsense counts as not said."""

    def number(name: str, default: int, most: int) -> int:
        text = request.query.get(name, "")
        return min(int(text), most) if text.isdecimal() and len(text) < 10 else default

    return number("offset", 0, 10**9), number("limit", 50, MAX_LINES)


def _find(pods: Iterable[Pod], namespace: str, name: str) -> Pod | None:
    return next((pod for pod in pods if pod.name == name and pod.namespace == namespace), None)
