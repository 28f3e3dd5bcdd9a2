"""The extender fails in every way while pods arrive: they keep being placed, and it is of use again soon after."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tests.extender.scheduler.processes import RunningExtender, wait_until
from tests.extender.scheduler.recording import RecordingProxy
from tests.extender.scheduler.scheduling import (
    PATIENT,
    TWINS,
    create,
    node,
    pod,
    shipped,
    twin,
    twin_status,
    wait_placed,
)

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

NODES = [f"node-{number:02}" for number in range(20)]
SOON_S = 15.0  # seconds are meant; the machine may be busy
PATIENCE_S = 300.0  # where nothing is said about how long it takes
_numbers = itertools.count()


def arrive(plane: ControlPlane, count: int) -> dict[str, str]:
    """So many more pods are created and placed."""
    names = [f"s-{next(_numbers)}" for _ in range(count)]
    create(plane, [pod(name) for name in names])
    return wait_placed(plane, names)


@contextmanager
def scheduling(plane: ControlPlane, url: str, **extender: Any) -> Iterator[None]:
    """The shipped configuration with built-in scoring off: where pods go shows whether the extender is heard."""
    with plane.scheduler(shipped(url=url, scoring=False, **extender)):
        yield


def set_best(plane: ControlPlane, best: str) -> None:
    """One node is far better than the others now."""
    for name in NODES:
        status = twin_status("performance", 100 if name == best else 10)
        plane.api.patch(f"{TWINS}/{name}/status", {"status": status})


def prepare(plane: ControlPlane) -> None:
    create(plane, [part for name in NODES for part in (node(name), twin(name, "performance", 10))])
    set_best(plane, NODES[0])


def assert_heard_soon(plane: ControlPlane, best: str) -> None:
    wait_until(lambda: set(arrive(plane, 5).values()) == {best}, SOON_S, f"pods go to {best}, as the extender says")


def test_killed_and_started_again(fresh_cluster: ControlPlane, tmp_path: Path) -> None:
    prepare(fresh_cluster)
    with RunningExtender(fresh_cluster, tmp_path) as extender, scheduling(fresh_cluster, extender.url):
        assert_heard_soon(fresh_cluster, NODES[0])
        extender.kill()
        assert len(arrive(fresh_cluster, 200)) == 200
        set_best(fresh_cluster, NODES[1])
        extender.start()
        assert_heard_soon(fresh_cluster, NODES[1])


def test_hung_and_awake_again(fresh_cluster: ControlPlane, tmp_path: Path) -> None:
    """Each pod costs two timeouts then, one for each question, but none is lost."""
    prepare(fresh_cluster)
    with RunningExtender(fresh_cluster, tmp_path) as extender, scheduling(fresh_cluster, extender.url):
        assert_heard_soon(fresh_cluster, NODES[0])
        extender.freeze()
        try:
            assert len(arrive(fresh_cluster, 10)) == 10
            set_best(fresh_cluster, NODES[1])
        finally:
            extender.thaw()
        assert_heard_soon(fresh_cluster, NODES[1])


GARBAGE = [
    web.Response(text="not JSON at all"),
    web.Response(text=""),
    web.Response(text="null"),
    web.Response(text="[]"),
    web.Response(text="{}"),
    web.Response(text='{"NodeNames": "node-00"}'),
    web.Response(text='{"NodeNames": ["never-heard-of"]}'),
    web.Response(text='{"NodeNames": null, "Error": "out of order"}'),
    web.Response(text='[{"Host": "node-00", "Score": 0.5}]'),
    web.Response(text='[{"Host": "never-heard-of", "Score": 100}]'),
    web.Response(text='[{"Host": 7, "Score": "high"}]'),
    web.Response(body=bytes(range(256)) * 100),
    web.Response(text="{" * 100_000),
    web.Response(status=500, text="broken"),
    web.Response(status=204),
    web.Response(status=301, headers={"Location": "/elsewhere"}),
]


def test_answering_garbage_and_sense_again(fresh_cluster: ControlPlane, tmp_path: Path) -> None:
    prepare(fresh_cluster)
    with (
        RunningExtender(fresh_cluster, tmp_path) as extender,
        RecordingProxy(extender.url) as proxy,
        scheduling(fresh_cluster, proxy.url),
    ):
        assert_heard_soon(fresh_cluster, NODES[0])
        answers = itertools.cycle(GARBAGE)
        proxy.spoil = lambda path: copied(next(answers))
        assert len(arrive(fresh_cluster, 100)) == 100
        assert proxy.spoilt >= 100
        proxy.spoil = lambda path: None
        set_best(fresh_cluster, NODES[1])
        assert_heard_soon(fresh_cluster, NODES[1])


def copied(answer: web.Response) -> web.Response:
    """A response can be sent once."""
    return web.Response(body=answer.body, status=answer.status, headers=answer.headers.copy())


def test_the_api_server_is_gone_for_long(fresh_cluster: ControlPlane, tmp_path: Path) -> None:
    """What the extender knows counts until it is stale, then every score is neutral; what a node is, it knows still."""
    stale_s = 8.0
    create(fresh_cluster, [part for name in "ab" for part in (node(name), twin(name, "performance", 80))])
    create(fresh_cluster, [node("e"), twin("e", "eco", 80)])
    asking, fresh, neutral = pod("asks", performance=True), dict.fromkeys("abe", 71), dict.fromkeys("abe", 50)
    with RunningExtender(fresh_cluster, tmp_path, TWIN_STALENESS_THRESHOLD=f"{stale_s:.0f}s") as extender:
        for name, state in (("a", "performance"), ("b", "performance"), ("e", "eco")):
            fresh_cluster.api.patch(f"{TWINS}/{name}/status", {"status": twin_status(state, 80)})
        wait_until(lambda: extender.scores(asking, ["a", "b", "e"]) == fresh, stale_s / 2, "the scores are fresh")
        fresh_cluster.kill_apiserver()
        killed_s = time.monotonic()
        assert extender.scores(asking, ["a", "b", "e"]) == fresh
        wait_until(lambda: extender.scores(asking, ["a", "b", "e"]) == neutral, 3 * stale_s, "the scores are neutral")
        assert time.monotonic() - killed_s > stale_s / 4
        time.sleep(stale_s)  # many failed attempts later
        assert extender.scores(asking, ["a", "b", "e"]) == neutral
        kept = json.loads(extender.ask("POST", "/filter", {"Pod": asking, "NodeNames": ["a", "b", "e"]})[1])
        assert kept["NodeNames"] == ["a", "b"]
        fresh_cluster.start_apiserver()

        def up_to_date() -> bool:
            """The operator goes on, too: fresh twins, and one that became eco."""
            for name, state, headroom in (("a", "performance", 100), ("b", "eco", 80)):
                fresh_cluster.api.patch(f"{TWINS}/{name}/status", {"status": twin_status(state, headroom)})
            return extender.scores(asking, ["a", "b", "e"]) == {"a": 85, "b": 71, "e": 50}

        wait_until(up_to_date, 60, "the extender knows what is new")
        kept = json.loads(extender.ask("POST", "/filter", {"Pod": asking, "NodeNames": ["a", "b", "e"]})[1])
        assert kept["NodeNames"] == ["a"]


def test_two_replicas_behind_one_address_answer_alike(fresh_cluster: ControlPlane, tmp_path: Path) -> None:
    create(fresh_cluster, [part for name in NODES for part in (node(name), twin(name, "performance", measured_w=150))])
    eco = NODES[::2]
    for name in eco:
        fresh_cluster.api.patch(f"{TWINS}/{name}/status", {"status": twin_status("eco", measured_w=100)})
    pods = [pod(f"{kind}-{number}", performance=kind == "p", cpu="4") for number in range(100) for kind in "ps"]
    with (
        RunningExtender(fresh_cluster, tmp_path) as one,
        RunningExtender(fresh_cluster, tmp_path) as other,
        RecordingProxy(one.url, other.url) as proxy,
        scheduling(fresh_cluster, proxy.url, **PATIENT),
    ):
        states = {name: "eco" if name in eco else "performance" for name in NODES}
        wait_until(lambda: one.classes() == other.classes() == states, PATIENCE_S, "both know the same")
        create(fresh_cluster, pods)
        where = wait_placed(fresh_cluster, (item["metadata"]["name"] for item in pods), PATIENCE_S)
        wait_until(lambda: one.scoring() == other.scoring(), PATIENCE_S, "both know of the last pod")
        for exchange in proxy.exchanges[::10]:
            path = f"/{exchange.verb}"
            assert one.ask("POST", path, exchange.question) == other.ask("POST", path, exchange.question)
    assert not {place for name, place in where.items() if name.startswith("p-")} & set(eco)
    assert proxy.failures == 0
