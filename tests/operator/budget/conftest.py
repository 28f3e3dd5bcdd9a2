"""Where budget loops are tried: a cluster in memory, and a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.operator.clusters import REAL, Ground, MemoryGround, RealGround

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane


@pytest.fixture(params=["memory", REAL])
def ground(request: pytest.FixtureRequest) -> Ground:
    if request.param == "memory":
        return MemoryGround()
    plane: ControlPlane = request.getfixturevalue("fresh_cluster")
    return RealGround(plane)
