"""`joulie twin`: the stable JSON, and what options change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cli_runner import DEMO, NOW, joulie, node, write


def test_twin_json_is_the_status_that_would_be_written(tmp_path: Path) -> None:
    labels: dict[str, Any] = {"hw__cpu_model": "EPYC 9654", "hw__cpu_sockets": "2"}
    file = write(tmp_path, node("b", cores=192, **labels), node("a", cores=192, **labels))
    outcome = joulie("twin", "-f", file, "-o", "json", "--now", "2026-11-01T12:00:00.9Z")
    assert (outcome.code, outcome.err) == (0, "")
    assert [item["node"] for item in outcome.document] == ["a", "b"]
    assert outcome.document[1] == {
        "node": "b",
        "status": {
            "schedulableClass": "eco",
            "predictedPowerHeadroomScore": pytest.approx(72.32),
            "predictedCoolingStressScore": pytest.approx(9.6),
            "predictedPsuStressScore": pytest.approx(0.512),
            "effectiveCapState": {"cpuPct": 60.0},
            "hardwareDensityScore": 100.0,
            "powerMeasurement": {
                "source": "static",
                "measuredNodePowerW": 128.0,
                "cpuCappedPowerW": 480.0,
                "gpuCappedPowerW": 0.0,
                "nodeCappedPowerW": 480.0,
                "cpuTdpW": 800.0,
                "gpuTdpW": 0.0,
                "nodeTdpW": 800.0,
                "powerTrendWPerMin": 0.0,
            },
            "lastUpdated": "2026-11-01T12:00:00Z",
        },
    }
    assert yaml.safe_load(joulie("twin", "-f", file, "-o", "yaml", *NOW).out) == (
        joulie("twin", "-f", file, "-o", "json", *NOW).document
    )


def test_ambient_overrides_the_environment(tmp_path: Path) -> None:
    file = write(tmp_path, node("a"))

    def stress(*more: str, **env: str) -> float:
        document = joulie("twin", "-f", file, "-o", "json", *more, env=env).document
        return float(document[0]["status"]["predictedCoolingStressScore"])

    cool = stress()
    assert stress("--ambient", "30") == pytest.approx(cool + 5)
    assert stress(AMBIENT_TEMP_C="40") == pytest.approx(cool + 10)
    assert stress("--ambient", "30", AMBIENT_TEMP_C="40") == pytest.approx(cool + 5)


def test_twin_says_when_no_node_is_in_scope(tmp_path: Path) -> None:
    outcome = joulie("twin", "-f", write(tmp_path, node("a", managed=False)), "-o", "json")
    assert (outcome.code, outcome.document) == (0, [])
    assert "--selector ''" in outcome.err


def test_twin_table_has_units_and_sums() -> None:
    lines = joulie("twin", "-f", DEMO, *NOW).out.splitlines()
    assert lines[6].split() == [
        *("gpu-b1", "■", "performance", "0.0", "100.0", "%", "22.2", "%", "5,098", "W"),
        *("6,400", "W", "6,400", "W", "100", "%", "100", "%", "static"),
    ]
    assert lines[-1] == "12 nodes draw 23.2 kW of the 34.2 kW that caps allow; hardware 40.5 kW"
