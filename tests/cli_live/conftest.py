"""One installation for all tests of this folder that leave it as they found it.

The tests of `cleanup` come first, by the name of their file, and have installations of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.cli_live.installation import Installation

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane


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
