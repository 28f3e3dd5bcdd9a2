"""One installation for all tests of these folders that leave it as they found it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.installation import Installation

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before tests.support.control_plane gives each folder a process of its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All on one control plane, and tests that clear it come before those that share an installation."""
    places = [place for place, item in enumerate(items) if HERE in item.path.parents]
    ordered = sorted((items[place] for place in places), key=lambda item: "installed" in _fixtures(item))
    for place, item in zip(places, ordered, strict=True):
        items[place] = item
        if "control_plane" in _fixtures(item):
            item.add_marker(pytest.mark.xdist_group("control_plane_cli"))


def _fixtures(item: pytest.Item) -> list[str]:
    return getattr(item, "fixturenames", [])


@pytest.fixture(scope="package")
def installed(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    from testbed.cleaning import clear

    control_plane.start_apiserver()
    clear(control_plane)
    with ExitStack() as ends:
        yield Installation(control_plane, tmp_path_factory.mktemp("installed"), ends)


@pytest.fixture
def there(installed: Installation) -> Installation:
    """With nothing pinned, and the policy's plan in force."""
    installed.settle()
    return installed
