"""Calls over HTTP: deadlines, and what a refusal says."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from joulie.cluster.api.cluster import KubernetesCluster
from joulie.cluster.api.credentials import Credentials
from joulie.cluster.port import NODES, ClusterError, ConflictError, NotFoundError
from tests.cluster.fault_server import FaultServer, Step, raw, refusal, serving, silence
from tests.cluster.watching import Notes, run


async def failure(answer: Step, *, timeout_s: float = 5.0, notes: Notes | None = None) -> ClusterError:
    async with serving(FaultServer([answer])) as server:
        cluster = KubernetesCluster(Credentials(server.url), timeout_s=timeout_s, observer=notes)
        try:
            with pytest.raises(ClusterError) as caught:
                await cluster.get(NODES, "a")
        finally:
            await cluster.close()
    return caught.value


@pytest.mark.parametrize(
    ("status", "error_class", "is_transient"),
    [
        (400, ClusterError, False),
        (401, ClusterError, False),
        (403, ClusterError, False),
        (404, NotFoundError, False),
        (409, ConflictError, False),
        (422, ClusterError, False),
        (429, ClusterError, True),
        (500, ClusterError, True),
        (503, ClusterError, True),
    ],
)
def test_a_refusal_has_a_class_a_status_and_the_servers_words(
    status: int, error_class: type[ClusterError], is_transient: bool
) -> None:
    error = run(failure(refusal(status, "because\nof this")))
    assert type(error) is error_class
    assert error.status == status
    assert error.is_transient is is_transient
    assert "GET /api/v1/nodes/a" in str(error)
    assert str(error).isprintable()


def test_an_error_page_of_a_proxy_is_a_refusal_too() -> None:
    error = run(failure(raw(b"<html>" + b"x" * 10_000, 502)))
    assert error.status == 502
    assert len(str(error)) < 400


@pytest.mark.parametrize(
    ("answer", "retry_after_s"),
    [
        (refusal(429, Retry_After="7"), 7.0),
        (raw(b'{"message": "x", "details": {"retryAfterSeconds": 3}}', 429), 3.0),
        (refusal(429, Retry_After="Fri, 31 Dec 2027 23:59:59 GMT"), None),
        (refusal(429, Retry_After="-5"), None),
        (refusal(429), None),
    ],
)
def test_a_server_may_say_when_to_come_back(answer: Step, retry_after_s: float | None) -> None:
    assert run(failure(answer)).retry_after_s == retry_after_s


def test_a_call_ends_at_its_deadline() -> None:
    notes = Notes()
    began_s = time.monotonic()
    error = run(failure(silence(), timeout_s=0.3, notes=notes))
    assert time.monotonic() - began_s < 30.0
    assert error.status == 0
    assert error.is_transient
    assert "no answer within 0.3 s" in str(error)
    assert notes.calls == [("get", 0)]
    assert notes.contacts == 0


def test_the_deadline_includes_waiting_for_a_connection() -> None:
    async def scenario() -> None:
        async with serving(FaultServer([silence()] * 3)) as server:
            cluster = KubernetesCluster(Credentials(server.url), timeout_s=0.3, connections=1)
            began_s = time.monotonic()
            outcomes = await asyncio.gather(*(cluster.get(NODES, "a") for _ in range(3)), return_exceptions=True)
            assert all(isinstance(outcome, ClusterError) for outcome in outcomes)
            assert time.monotonic() - began_s < 30.0
            await cluster.close()

    run(scenario())


def test_a_server_that_refuses_connections_is_no_answer() -> None:
    async def scenario() -> None:
        async with serving(FaultServer()) as server:
            pass
        cluster = KubernetesCluster(Credentials(server.url))
        with pytest.raises(ClusterError) as caught:
            await cluster.get(NODES, "a")
        assert caught.value.status == 0
        assert server.url in str(caught.value)
        await cluster.close()

    run(scenario())


def test_a_refused_token_is_replaced() -> None:
    class Tokens:
        number = 1

        async def header(self) -> str:
            return f"Bearer {self.number}"

        def forget(self) -> None:
            self.number += 1

    async def scenario() -> None:
        async with serving(FaultServer([refusal(401), raw(b"{}")])) as server:
            cluster = KubernetesCluster(Credentials(server.url, Tokens()))
            with pytest.raises(ClusterError):
                await cluster.get(NODES, "a")
            await cluster.get(NODES, "a")
            assert server.authorizations == ["Bearer 1", "Bearer 2"]
            await cluster.close()

    run(scenario())


def test_an_answer_about_the_object_is_contact_and_a_fault_of_the_server_is_none() -> None:
    for status, contacts in ((404, 1), (409, 1), (401, 0), (429, 0), (500, 0)):
        notes = Notes()
        run(failure(refusal(status), notes=notes))
        assert notes.contacts == contacts


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_talking_to_a_cluster_loads_neither_the_client_package_nor_numpy() -> None:
    script = (
        "import re, sys, joulie.cluster.api.cluster, joulie.cluster.lease.election, joulie.cluster.decoding.decoders\n"
        "heavy = {'kubernetes', 'numpy', 'yaml', 'click', 'rich', 'requests', 'urllib3'} & set(sys.modules)\n"
        "print(*sorted(heavy)); print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
    )
    outcome = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    heavy, memory_kb = outcome.stdout.split("\n")[:2]
    assert heavy == ""
    assert int(memory_kb) < 50_000


def test_closing_ends_calls_that_wait_for_an_answer() -> None:
    async def scenario() -> None:
        async with serving(FaultServer([silence()])) as server:
            cluster = KubernetesCluster(Credentials(server.url), timeout_s=30.0)
            call = asyncio.ensure_future(cluster.get(NODES, "a"))
            while not server.queries:
                await asyncio.sleep(0.01)
            await cluster.close()
            with pytest.raises(ClusterError, match="closed"):
                async with asyncio.timeout(1.0):
                    await call

    run(scenario())
