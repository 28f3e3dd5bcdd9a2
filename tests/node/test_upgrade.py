"""From the first release's chart and definitions to these, with a cap in force; and once more from nothing.

`releases/first.tgz` is the chart of the first release as it was, without dashboards.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from joulie.cluster.crds.definitions import crds
from tests.chart.charts import CHART, NAMESPACE, RELEASE
from tests.chart.kubelet import until
from tests.chart.leftovers import JOULIE, joulie_labels
from tests.node.release import AGENTS_LEVEL, ECO_W, FOUND_W, IMAGE, READY_S, SWIFT, Release, node_labels

PREVIOUS = Path(__file__).parent / "releases/first.tgz"
VALUES = {
    "image": IMAGE,
    "operator": {"settings": {**SWIFT, "STATIC_HP_FRAC": 1}},
    "agent": {"settings": SWIFT},
    "extender": {"replicas": 1},
}


@pytest.fixture
def empty(release: Release) -> Iterator[Release]:
    node_labels(release.node, **{"joulie.io/managed": "true"})
    yield release
    release.remove()
    node_labels(release.node, **{"joulie.io/managed": None})


def test_an_upgrade_keeps_pins_and_twins_and_a_second_install_works(empty: Release) -> None:
    empty.install(VALUES, AGENTS_LEVEL, PREVIOUS)
    assert "conditions" not in str(empty.node.api.get(f"{JOULIE}/nodetwins"))  # the old definitions do not know them
    empty.joulie("pin", empty.node.name, "eco")
    until(lambda: empty.caps_w() == [ECO_W] * 2, "the first release caps")
    until(lambda: empty.node.name in empty.twins(), "the first release makes a twin")
    twin = empty.twins()[empty.node.name]["metadata"]["uid"]

    empty.joulie("crds", "apply")
    empty.helm.run("upgrade", RELEASE, str(CHART), "--namespace", NAMESPACE, *empty.helm.given(VALUES))
    until(empty.is_ready, "every pod of the new release is Ready", READY_S)
    assert empty.twins()[empty.node.name]["metadata"]["uid"] == twin
    until(lambda: empty.caps_w() == [ECO_W] * 2, "the cap is in force again")
    until(lambda: empty.condition("Enforced") == "True", "the agent says so")
    served = empty.node.api.get("/apis/joulie.io/v1alpha1")["resources"]
    assert {one["spec"]["names"]["plural"] for one in crds()} <= {one["name"] for one in served}
    empty.helm.run("test", RELEASE, "--namespace", NAMESPACE)

    empty.uninstall()
    assert empty.caps_w() == [FOUND_W] * 2
    assert joulie_labels(empty.node) == set()

    empty.install(VALUES, AGENTS_LEVEL)  # finds the pin, which outlives a release
    until(lambda: empty.caps_w() == [ECO_W] * 2, "the second install caps")
    empty.joulie("unpin", empty.node.name)
    until(lambda: empty.caps_w() == [FOUND_W] * 2, "and lets go")
