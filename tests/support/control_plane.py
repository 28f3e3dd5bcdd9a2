"""Fixtures for tests against a real API server, and what happens to those tests where there is none.

`control_plane` is one server for all tests of a process, with Joulie's definitions installed; `fresh_cluster` is the
same, emptied before the test. A test that uses either is `slow`, gets the marker `control_plane`, and runs in the same
process as its neighbours in the folder: no process starts a second control plane, and few start one at all.
The testbed is imported only where it is used: most test runs never need it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.obtaining import in_ci, say_skipped

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

FIXTURES = frozenset({"control_plane_binaries", "control_plane", "fresh_cluster", "kubectl"})
NEEDED = "needs the control plane"


@pytest.fixture(scope="session")
def control_plane_binaries(pytestconfig: pytest.Config) -> None:
    """Only that it can be had: for tests that start one of their own."""
    from testbed.build import CONTROL_PLANE

    available(pytestconfig, CONTROL_PLANE)


@pytest.fixture(scope="session")
def kubectl(pytestconfig: pytest.Config) -> Path:
    """The path of a kubectl of the same version."""
    return available(pytestconfig, ["kubectl"])["kubectl"]


@pytest.fixture(scope="session")
def control_plane(control_plane_binaries: None) -> Iterator[ControlPlane]:
    """A running control plane with Joulie's CRDs; whatever earlier tests left is still in it."""
    from testbed.control_plane import ControlPlane

    with ControlPlane() as plane:
        plane.install_crds()
        yield plane


@pytest.fixture
def fresh_cluster(control_plane: ControlPlane) -> ControlPlane:
    """The same, running and without nodes, pods, leases, events and objects of Joulie."""
    from testbed.cleaning import clear

    control_plane.start_apiserver()
    clear(control_plane)
    return control_plane


def available(config: pytest.Config, names: Sequence[str]) -> dict[str, Path]:
    """The binaries; without them the test is skipped, or in CI fails."""
    from testbed.build import binaries
    from testbed.unavailable import ControlPlaneUnavailable

    capture = config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():  # a build takes minutes; its progress is to be seen
            return binaries(names)
    except ControlPlaneUnavailable as unavailable:
        if in_ci():
            pytest.fail(f"{NEEDED}, and in CI there is no excuse: {unavailable.reason}", pytrace=False)
        pytest.skip(f"{NEEDED}: {unavailable.reason}")


@pytest.hookimpl(tryfirst=True)  # before pytest picks by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            continue
        item.add_marker(pytest.mark.control_plane)
        item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(f"control_plane_{item.path.parent.name}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    say_skipped(terminalreporter, NEEDED)
