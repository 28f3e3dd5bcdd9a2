"""The clusters that the contract runs on."""

from __future__ import annotations

import pytest

from tests.cluster.clusters import MemoryWorld, RealWorld, World

REAL = pytest.param(
    "real", marks=[pytest.mark.control_plane, pytest.mark.slow, pytest.mark.xdist_group("control_plane")]
)


@pytest.fixture(params=["memory", REAL])
def world(request: pytest.FixtureRequest) -> World:
    if request.param == "memory":
        return MemoryWorld()
    return RealWorld(request.getfixturevalue("fresh_cluster"))
