"""What can be wrong with sensors, and with TelemetryProfiles."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

from tests.cli.doctor.faults import NODE, Plant, Planted, every_node_is_estimated
from tests.cli.doctor.faults_around import set_for_operator, together
from tests.cli.installation import Installation, Object


def estimated(address: str, **env: str) -> Plant:
    """A power source is set, and no node is measured."""
    source = {"OPERATOR_NODE_POWER_SOURCE": "prometheus", "OPERATOR_NODE_POWER_PROMETHEUS_ADDRESS": address}
    return together(set_for_operator(**source, **env), every_node_is_estimated)


@contextmanager
def serving(status: int, body: Any, host: str = "127.0.0.1") -> Iterator[str]:
    """The address of a server that gives every client the same answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

        def log_message(self, *_: Any) -> None:
            """Into no test's output."""

    with HTTPServer((host, 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://{host}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def prometheus(status: int, *nodes: str) -> Plant:
    """One that refuses, or that knows these nodes alone."""

    @contextmanager
    def plant(there: Installation) -> Iterator[None]:
        series = [{"metric": {"node_name": node}, "value": [time.time(), "100"]} for node in nodes]
        good = {"status": "success", "data": {"resultType": "vector", "result": series}}
        bad = {"status": "error", "errorType": "bad_data", "error": "a secret of the server"}
        with serving(status, good if status == 200 else bad) as address, estimated(address)(there):
            yield

    return plant


@contextmanager
def a_page_for_people(there: Installation) -> Iterator[None]:
    """Such as the login page of a proxy."""
    with serving(200, b"<!DOCTYPE html><title>secret</title>") as address, estimated(address)(there):
        yield


def a_certificate_that_nobody_knows(there: Installation) -> AbstractContextManager[None]:
    """The API server's own: it is for this address, and of an authority that clients do not have."""
    return estimated(there.plane.url)(there)


def profile(name: str, target: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "TelemetryProfile",
        "metadata": {"name": name},
        "spec": {"target": target, **spec},
    }


@contextmanager
def a_profile_is_not_accepted(there: Installation) -> Iterator[None]:
    """As the operator's condition says of one whose node is out of scope."""
    free = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "free"}}
    said = {"type": "Accepted", "status": "False", "reason": "OutOfScope", "message": "free is out of scope"}
    astray = profile("astray", {"scope": "node", "nodeName": "free"})
    with there.added(free, astray | {"status": {"conditions": [said]}}):
        yield


def http(endpoint: str) -> Object:
    return {"cpu": {"type": "http", "http": {"endpoint": endpoint}}}


def profiles(*objects: Object) -> Plant:
    return lambda there: there.added(*objects)


CLUSTER: Object = {"scope": "cluster"}
TELEMETRY: dict[str, Planted] = {
    "Prometheus is dead": Planted(
        estimated("http://user:secret@127.0.0.1:1"), "telemetry-unreachable", "warning", "http://127.0.0.1:1 does not"
    ),
    "Prometheus is a Service that is not there": Planted(
        estimated("http://prometheus.monitoring.svc:9090"),
        "telemetry-unreachable",
        "warning",
        "Service monitoring/prometheus",
    ),
    "Prometheus refuses the query": Planted(
        prometheus(400), "telemetry-refused", "warning", "returns an error: HTTP 400"
    ),
    "a page for people stands where Prometheus should": Planted(
        a_page_for_people, "telemetry-refused", "warning", "the response is not a query result"
    ),
    "the certificate of Prometheus is not trusted": Planted(
        a_certificate_that_nobody_knows, "telemetry-unreachable", "warning", "certificate"
    ),
    "Prometheus knows no such series": Planted(
        prometheus(200),
        "telemetry-no-series",
        "warning",
        "no series for 6 nodes (node-00000, node-00001, node-00002, …)",
    ),
    "Prometheus knows one node only": Planted(
        prometheus(200, NODE), "telemetry-no-series", "warning", "no series for 5 nodes"
    ),
    "Prometheus answers and is not believed": Planted(
        prometheus(200, *(f"node-{number:05}" for number in range(6))),
        "telemetry-unused",
        "warning",
        "the operator does not use it",
    ),
    "profiles contradict each other": Planted(
        profiles(profile("a", CLUSTER, controls=http("http://a")), profile("b", CLUSTER, controls=http("http://b"))),
        "profile-conflict",
        "warning",
        "a, b cover the same 6 nodes: only a takes effect",
        follow=True,
    ),
    "a profile is for a node out of scope": Planted(
        a_profile_is_not_accepted, "profile-without-effect", "warning", "has no effect: free is out of scope"
    ),
    "a profile speaks for no node": Planted(
        profiles(profile("lost", {"scope": "node", "nodeName": "none"})), "profile-without-effect", "warning", "lost"
    ),
    "a profile has an endpoint that cannot be reached": Planted(
        profiles(profile("odd", CLUSTER, controls=http("simulator/{node}"))),
        "profile-endpoint",
        "warning",
        "spec.controls.cpu.http.endpoint",
    ),
    "a profile lacks its Prometheus": Planted(
        profiles(profile("half", CLUSTER, sources={"cpu": {"type": "prometheus"}})),
        "profile-endpoint",
        "warning",
        "spec.sources.cpu.prometheus: missing",
    ),
}
