"""The image, built once for all tests that need it; loud where it cannot be, and in CI a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chart.charts import Helm
from tests.image.container import Container
from tests.support.control_plane import available
from tests.support.obtaining import UnavailableError, obtained, say_skipped

NEEDED = "needs the image"
HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def image_archive(pytestconfig: pytest.Config) -> Path:
    """An OCI archive of the sources as they are."""
    return obtained(_archive, pytestconfig, NEEDED)


@pytest.fixture
def helm(pytestconfig: pytest.Config, tmp_path: Path) -> Helm:
    """Without a cluster."""
    return Helm(available(pytestconfig, ["helm"])["helm"], tmp_path)


@pytest.fixture(scope="session")
def image(image_archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Container:
    return Container(image_archive, tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="session")
def release(image_archive: Path, request: pytest.FixtureRequest) -> Path:
    """What `make release` makes, for this Python on this machine; only where an image can be built."""
    found: Path = request.getfixturevalue("released")
    return found


def _archive() -> Path:
    from testbed.image.build import image_archive
    from testbed.unavailable import Unavailable

    try:
        return image_archive()
    except Unavailable as unavailable:
        raise UnavailableError(unavailable.reason) from unavailable


@pytest.hookimpl(tryfirst=True)  # before pytest picks by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With the tests of the node, which need the same image and the same release."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.xdist_group("node"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    say_skipped(terminalreporter, NEEDED)
