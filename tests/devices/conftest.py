"""The stand-in libraries, compiled once for all tests of a process, and the worlds that they believe in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.devices.standin.compile import compile_library, compiler
from tests.devices.standin.play import World
from tests.support.obtaining import in_ci


def _compiled(name: str, factory: pytest.TempPathFactory) -> Path:
    command = compiler()
    if command is None:
        reason = "needs a C compiler (cc, gcc, clang, or the package ziglang)"
        if in_ci():
            pytest.fail(f"{reason}, and in CI there is no excuse", pytrace=False)
        pytest.skip(f"GPU LIBRARIES NOT TESTED: {reason}")
    return compile_library(name, command, factory.mktemp(name))


@pytest.fixture(scope="session")
def nvml_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the stand-in for NVML lies."""
    return _compiled("nvml", tmp_path_factory)


@pytest.fixture(scope="session")
def amdsmi_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the stand-in for AMD SMI lies."""
    return _compiled("amdsmi", tmp_path_factory)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Without any board yet."""
    return World(tmp_path / "world")
