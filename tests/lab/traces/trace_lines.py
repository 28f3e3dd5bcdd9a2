"""Lines of a trace for tests."""

from __future__ import annotations

from typing import Any


def record(number: int = 0, **more: Any) -> dict[str, Any]:
    """A good line; `more` replaces parts of it."""
    return {
        "type": "job",
        "jobId": f"job-{number}",
        "submitTimeOffsetSec": float(number),
        "podTemplate": {"requests": {"cpu": "4"}},
        "work": {"cpuUnits": 400.0},
        **more,
    }
