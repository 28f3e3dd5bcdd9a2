"""What `make bench` measures at 5,000 nodes, at a size that a test can afford; counted by the API server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

NODES, PODS_PER_NODE = 200, 5


def test_reads_and_writes_are_as_few_as_promised(fresh_cluster: ControlPlane) -> None:
    from bench.operator.scale import Refreshing, measure

    refreshes = Refreshing(tick_s=2, interval_s=60, ticks=3)
    size, whole = measure(fresh_cluster, NODES, PODS_PER_NODE, lambda _: None, refreshes)
    assert size.contact.writes == 3 * NODES
    steady = size.steady
    assert (steady.reads, steady.writes) == (0, 0)

    assert whole is not None
    change = whole.change
    assert {name for name in change.objects if whole.node not in name} == set()
    assert {f"nodes {whole.node}", f"nodetwins {whole.node}"} < change.objects  # and an event
    assert change.writes == 4

    refreshing = whole.refreshing
    assert refreshing.reads == 0
    assert refreshing.writes == refreshing.refreshes
    assert refreshing.refreshes > 0
    assert refreshing.refreshes < 3 * refreshes.due(NODES)  # when each falls due is chance

    # A small cluster says little about speed: only what would be absurd.
    assert size.contact.rate_per_s > whole.bare_per_s / 5
    assert steady.cpu_s < 2 * whole.loaded.cpu_s
    assert size.peak_mb < 250
