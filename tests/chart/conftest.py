"""Helm, built from source and kept in the user's cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chart.charts import Helm
from tests.support.control_plane import available


@pytest.fixture(scope="session")
def helm_binary(pytestconfig: pytest.Config) -> Path:
    return available(pytestconfig, ["helm"])["helm"]


@pytest.fixture
def helm(helm_binary: Path, tmp_path: Path) -> Helm:
    """Without a cluster."""
    return Helm(helm_binary, tmp_path)
