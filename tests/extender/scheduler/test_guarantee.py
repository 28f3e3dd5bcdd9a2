"""No performance pod is bound to a node that was eco or draining when it was filtered, whatever changes meanwhile."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.extender.scheduler.admission import policy_installed
from tests.extender.scheduler.churning import Churn, Knowledge, Span
from tests.extender.scheduler.processes import RunningExtender
from tests.extender.scheduler.recording import Exchange, RecordingProxy
from tests.extender.scheduler.scheduling import create, node, pod, shipped, twin, wait_placed

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

NODES = [f"node-{number:02}" for number in range(50)]
STEADY = NODES[:5]  # stay at full power, so that every pod finds a place
PODS = 3000


@pytest.mark.parametrize("policy", [False, True], ids=["extender alone", "with the admission policy"])
def test_over_thousands_of_pods_and_changing_nodes(fresh_cluster: ControlPlane, tmp_path: Path, policy: bool) -> None:
    create(fresh_cluster, [part for name in NODES for part in (node(name, "performance"), twin(name, "performance"))])
    pods = [pod(f"{'ps'[number % 2]}-{number}", performance=number % 2 == 0, cpu="10m") for number in range(PODS)]
    names = [one["metadata"]["name"] for one in pods]
    with (
        policy_installed(fresh_cluster) if policy else nullcontext(),
        RunningExtender(fresh_cluster, tmp_path) as extender,
        RecordingProxy(extender.url) as proxy,
        # A busy machine is not what this is about: no answer may come too late to count.
        fresh_cluster.scheduler(shipped(url=proxy.url, httpTimeout="20s")),
        Churn(fresh_cluster, extender, NODES[len(STEADY) :]) as churn,
    ):
        for first in range(0, PODS, 500):
            create(fresh_cluster, pods[first : first + 500])
            wait_placed(fresh_cluster, names[: first + 500], 300)
        where = wait_placed(fresh_cluster, names)
    assert churn.changes > len(NODES)

    asked_and_barred = 0
    for exchange in proxy.filters(performance=True):
        asked_and_barred += sum(churn.known.surely_barred(name, exchange) for name in exchange.asked)
        assert churn.known.wrongly_kept(exchange) == set(), exchange.pod
    assert policy or asked_and_barred > PODS  # the scheduler's own filter leaves few with the policy

    filtered: dict[str, Exchange] = {one.pod: one for one in proxy.exchanges if one.verb == "filter"}  # the last
    for name, place in where.items():
        assert place in filtered[name].kept, name
    for name in (name for name in names if name.startswith("p-")):
        assert not churn.known.surely_barred(where[name], filtered[name]), name
    on_changing = {kind: {where[name] for name in names if name[0] == kind} - set(STEADY) for kind in "ps"}
    assert on_changing["p"]
    assert len(on_changing["s"]) > len(NODES) / 2
    assert proxy.failures == 0
    assert sorted(churn.delays_s)[len(churn.delays_s) // 2] < 5.0  # milliseconds, where the machine is not busy


@pytest.mark.parametrize(
    ("asked_at_s", "answered_at_s", "kept", "wrong"),
    [
        (11.0, 12.0, ["a", "b"], {"a"}),
        (11.0, 12.0, ["b"], set()),
        (9.0, 12.0, ["a", "b"], set()),  # was asked before it surely knew
        (11.0, 21.0, ["a", "b"], set()),  # the next change was under way
        (31.0, 32.0, ["a", "b"], {"a"}),
    ],
)
def test_the_judge_sees_an_answer_against_better_knowledge(
    asked_at_s: float, answered_at_s: float, kept: list[str], wrong: set[str]
) -> None:
    known = Knowledge()
    known.barred["a"] += [Span(10.0, 20.0), Span(30.0, 40.0)]
    exchange = Exchange("filter", "p", True, asked_at_s, answered_at_s, {"NodeNames": ["a", "b"]}, {"NodeNames": kept})
    assert known.wrongly_kept(exchange) == wrong
