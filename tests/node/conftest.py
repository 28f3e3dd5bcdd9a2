"""One real node for all tests of this folder, and what happens to them where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from testbed.image.build import image_archive
from testbed.node.machine import check_machine
from testbed.node.node import Node, Parts, parts
from testbed.unavailable import Unavailable
from tests.chart.charts import Helm
from tests.node.release import Release
from tests.support.control_plane import available
from tests.support.obtaining import in_ci, say_skipped

HERE = Path(__file__).parent
NEEDED = "needs a real node"
Found = TypeVar("Found")


@pytest.fixture(scope="session")
def node_parts(pytestconfig: pytest.Config) -> Parts:
    """Only that a node can be had: for tests that start one of their own."""
    try:
        check_machine()
    except Unavailable as unavailable:  # no matter of effort: also in CI
        pytest.skip(f"{NEEDED}: {unavailable.reason}")
    return _had(parts, pytestconfig)


@pytest.fixture(scope="session")
def node(node_parts: Parts) -> Iterator[Node]:
    """A running node with power caps of two packages that do not exist."""
    with Node("intel-dual") as running:
        yield running


@pytest.fixture(scope="session")
def release(node: Node, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """The chart and the real image, ready to be installed on the node."""
    node.import_image(_had(image_archive, pytestconfig))
    helm = available(pytestconfig, ["helm"])["helm"]
    return Release(node, Helm(helm, tmp_path_factory.mktemp("helm"), node.kubeconfig))


def _had(find: Callable[[], Found], config: pytest.Config) -> Found:
    capture = config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():  # a build takes minutes; its progress is to be seen
            return find()
    except Unavailable as unavailable:
        if in_ci():
            pytest.fail(f"{NEEDED}, and in CI there is no excuse: {unavailable.reason}", pytrace=False)
        pytest.skip(f"{NEEDED}: {unavailable.reason}")


@pytest.hookimpl(tryfirst=True)  # before pytest picks by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.xdist_group("node"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    say_skipped(terminalreporter, NEEDED)
