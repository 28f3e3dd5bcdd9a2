"""A real Prometheus looks at Joulie as it runs: every panel has data, no alert is near, and a planted fault shows."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.monitoring.expressions import RULES, of_dashboards
from tests.monitoring.running import Running, alerts_of, answer_of, demo, started
from tests.support.prometheus_server import PrometheusServer
from tools.generate.metrics_reference import metrics_of_processes

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

pytestmark = pytest.mark.slow
PATIENCE_S = 90.0
_SERIES = re.compile(r"^(joulie_\w+)(?:\{(.*)\})? (\S+)(?: \S+)?$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="')
_ADDED = re.compile(r"_(?:bucket|sum|count)$")


@pytest.fixture
def running_joulie(fresh_cluster: ControlPlane, tmp_path: Path) -> Iterator[Running]:
    with ExitStack() as ends:
        yield started(fresh_cluster, tmp_path, ends)


def test_every_panel_has_data_from_a_running_demo_and_the_reference_names_every_metric(
    start_prometheus: type[PrometheusServer], tmp_path: Path
) -> None:
    with (
        demo(tmp_path) as joulie,
        start_prometheus(list(joulie.targets.values()), scrape_interval="1s") as prometheus,
    ):
        empty = {asked.where: asked for asked in of_dashboards()}

        def all_have_data() -> bool:
            for where, asked in list(empty.items()):
                if _has_data(answer_of(prometheus.address, asked.over("10s", ".+"))):
                    del empty[where]
            return not empty

        _wait_until(all_have_data, lambda: f"without data: {sorted(empty)}")
        for process, metrics in metrics_of_processes().items():
            _compare(joulie.page(process), {name: set(labels) for name, _, _, labels in metrics})


def test_no_alert_is_near_in_a_cluster_in_good_order_and_a_planted_fault_fires_and_resolves(
    running_joulie: Running, start_prometheus: type[PrometheusServer], tmp_path: Path
) -> None:
    rules = tmp_path / "alerts.yaml"
    rules.write_text(re.sub(r"\bfor: \w+", "for: 1s", RULES.read_text()))
    with start_prometheus(list(running_joulie.targets.values()), scrape_interval="1s", rules=[rules]) as prometheus:

        def has_been_asked() -> bool:
            running_joulie.ask_extender()
            return _has_data(answer_of(prometheus.address, "rate(joulie_scheduler_filter_requests_total[5m]) > 0"))

        _wait_until(has_been_asked, lambda: "every process has been scraped for a while")
        _wait_until(lambda: not alerts_of(prometheus.address), lambda: f"quiet: {alerts_of(prometheus.address)}")

        capped = answer_of(prometheus.address, "joulie_agent_cap_missing == 0")[0]["metric"]["node"]
        running_joulie.disturb(capped, "gone")
        _wait_until(lambda: bool(alerts_of(prometheus.address)), lambda: "the missing cap is seen")
        for alert in alerts_of(prometheus.address):
            assert (alert["labels"]["alertname"], alert["labels"]["node"]) == ("JoulieCapNotEnforced", capped)
            assert alert["annotations"]["summary"].startswith(f"{capped}: the ")
        running_joulie.disturb(capped, "none")
        _wait_until(lambda: not alerts_of(prometheus.address), lambda: "the cap is back")


def _compare(page: str, described: dict[str, set[str]]) -> None:
    """The page has no metric that the reference does not name, and none with other labels."""
    assert set(re.findall(r"^# TYPE (joulie_\w+)", page, re.MULTILINE)) - _created(page) <= set(described)
    for name, labels, _ in _SERIES.findall(page):
        if not name.endswith("_created"):
            metric = name if name in described else _ADDED.sub("", name)
            assert set(_LABEL.findall(labels)) - {"le"} == described[metric], name


def _created(page: str) -> set[str]:
    """Times of creation are prometheus-client's own, and no metrics of Joulie's."""
    return set(re.findall(r"^# TYPE (joulie_\w+_created)", page, re.MULTILINE))


def _has_data(results: list[dict[str, Any]]) -> bool:
    return any(not math.isnan(float(result["value"][1])) for result in results)


def _wait_until(condition: Callable[[], bool], what: Callable[[], str]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, what()
        time.sleep(0.5)
