"""In the real kube-scheduler pods go where the extender's scores say, as far as the weight lets them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.extender.scheduler.processes import RunningExtender
from tests.extender.scheduler.scheduling import PATIENT, Body, create, node, pod, shipped, twin, wait_placed
from tests.support.howto_pages import FOLDER

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

TAINTED: dict[str, Any] = {"taints": [{"key": "old", "effect": "PreferNoSchedule"}]}


class Row(NamedTuple):
    """A line of the worked example in docs/how-to/scheduler.md."""

    score_max: int
    tainted: int
    plain: int
    lead: int
    winner: str


def worked_example() -> list[Row]:
    found = re.findall(
        r"(?m)^\| (\d+) \| (\d+) \| (\d+) \| (\d+) \| 300 \| (\w+) \|$", (FOLDER / "scheduler.md").read_text()
    )
    return [Row(int(top), int(one), int(other), int(lead), winner) for top, one, other, lead, winner in found]


def test_the_page_has_a_worked_example() -> None:
    assert {row.winner for row in worked_example()} == {"tainted", "plain"}


@pytest.mark.parametrize(
    ("file", "scheduler"),
    [("second-scheduler.yaml", "joulie-scheduler"), ("default-scheduler.yaml", "default-scheduler")],
)
def test_both_configurations_that_are_shipped_place_pods_by_the_extenders_advice(
    fresh_cluster: ControlPlane, tmp_path: Path, file: str, scheduler: str
) -> None:
    create(fresh_cluster, [part for name in "abc" for part in (node(name), twin(name, "performance", 20))])
    create(fresh_cluster, [node("best"), twin("best", "performance", 90)])
    with (
        RunningExtender(fresh_cluster, tmp_path) as extender,
        fresh_cluster.scheduler(shipped(file, extender.url, **PATIENT)),
    ):
        create(fresh_cluster, [pod(f"s-{number}", scheduler=scheduler) for number in range(10)])
        where = wait_placed(fresh_cluster, (f"s-{number}" for number in range(10)))
    assert set(where.values()) == {"best"}


def test_each_class_goes_to_the_node_with_its_best_score(fresh_cluster: ControlPlane, tmp_path: Path) -> None:
    """A few nodes, built-in scoring off: the extender alone decides."""
    headroom = {
        "p-high": ("performance", 80),
        "p-low": ("performance", 40),
        "e-high": ("eco", 78),
        "e-low": ("eco", 30),
    }
    objects = [
        made for name, (state, free) in headroom.items() for made in (node(name, state), twin(name, state, free))
    ]
    create(fresh_cluster, objects)
    pods = [pod(f"{kind}-{number}", performance=kind == "p") for number in range(20) for kind in "ps"]
    with RunningExtender(fresh_cluster, tmp_path) as extender:
        scores = {kind: extender.scores(pod("any", performance=kind == "p"), list(headroom)) for kind in "ps"}
        # 0.7 × 80 + 15; and 0.7 × 78 + 15 + 10 for a standard pod on an eco node
        assert scores["p"] == {"p-high": 71, "p-low": 43, "e-high": 70, "e-low": 36}
        assert scores["s"]["e-high"] == 80 == max(scores["s"].values())
        with fresh_cluster.scheduler(shipped(url=extender.url, scoring=False, **PATIENT)):
            create(fresh_cluster, pods)
            where = wait_placed(fresh_cluster, (one["metadata"]["name"] for one in pods))
    assert {name[0]: place for name, place in where.items()} == {"p": "p-high", "s": "e-high"}
    assert set(where.values()) == {"p-high", "e-high"}


@pytest.mark.parametrize("row", worked_example(), ids=lambda row: f"EXTENDER_SCORE_MAX={row.score_max}")
def test_how_much_the_score_counts_against_the_built_in_plugins(
    fresh_cluster: ControlPlane, tmp_path: Path, row: Row
) -> None:
    """A better node with a taint of PreferNoSchedule, which costs it the 300 points of a plugin of weight 3."""
    objects: list[Body] = [node("tainted", "performance", **TAINTED), twin("tainted", "performance", 100)]
    objects += [node("plain", "performance"), twin("plain", "performance", 50)]
    create(fresh_cluster, objects)
    pods = [f"p-{number}" for number in range(10)]
    with (
        RunningExtender(fresh_cluster, tmp_path, EXTENDER_SCORE_MAX=str(row.score_max)) as extender,
        fresh_cluster.scheduler(shipped(url=extender.url, **PATIENT)),
    ):
        asked = pod("any", performance=True, cpu="1m")
        assert extender.scores(asked, ["tainted", "plain"]) == {"tainted": row.tainted, "plain": row.plain}
        create(fresh_cluster, [pod(name, performance=True, cpu="1m") for name in pods])
        where = wait_placed(fresh_cluster, pods)
    assert (row.tainted - row.plain) * 10 == row.lead
    assert set(where.values()) == {row.winner}


def test_a_burst_of_equal_pods_spreads_over_equal_nodes(fresh_cluster: ControlPlane, tmp_path: Path) -> None:
    """Twins are older than the pods: what the extender adds for pods bound since then keeps them from herding."""
    names = [f"node-{number:02}" for number in range(40)]
    idle = [part for name in names for part in (node(name), twin(name, "performance", measured_w=150))]
    create(fresh_cluster, idle)
    pods = [f"s-{number}" for number in range(400)]
    with (
        RunningExtender(fresh_cluster, tmp_path) as extender,
        fresh_cluster.scheduler(shipped(url=extender.url, scoring=False, **PATIENT)),
    ):
        create(fresh_cluster, [pod(name, cpu="8") for name in pods])
        where = wait_placed(fresh_cluster, pods)
    counted = Counter(where.values())
    assert max(counted.values()) <= 2 * len(pods) / len(names), counted
