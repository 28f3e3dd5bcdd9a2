"""The examples of CONTRIBUTING.md do what it says; tests/devices and tests/cli try those of backend and command."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from joulie.control.scoring.term import Term
from joulie.model.snapshot import PowerReading
from joulie.model.tiers import Tier
from joulie.settings import OperatorSettings, load
from joulie.sources.node_queries import NodeAnswer
from joulie.sources.power.reader import PowerReader, ReaderContext
from tests.sources.loopback import PATIENT, Clock, serving

PAGE = (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")


def example(title: str) -> dict[str, Any]:
    """The module that the section shows, as its names."""
    section = PAGE.partition(f"**{title}.**")[2]
    module: dict[str, Any] = {}
    exec(section.partition("```python\n")[2].partition("```")[0], module)
    return module


def test_the_score_term_takes_points_for_the_building() -> None:
    term = example("A score term")["TERM"]
    assert isinstance(term, Term)
    node: Any = SimpleNamespace(pue=1.3)
    cluster: Any = None
    assert term.points(node, cluster) == pytest.approx(-3.0)


def test_the_telemetry_tier_reads_its_gateway() -> None:
    reader = example("A telemetry tier")["READER"]
    assert isinstance(reader, PowerReader)

    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.json_response({"node-1": 412.5, "stranger": 1})

    async def read() -> NodeAnswer[PowerReading]:
        async with serving(answer) as address, aiohttp.ClientSession() as session:
            settings = load(OperatorSettings, {"OPERATOR_NODE_POWER_HTTP_ENDPOINT": address})
            reader.check(settings)
            source = reader.open(ReaderContext(settings, session, Clock(7.0), PATIENT, {}))
            return await source.read(["node-1", "node-2"])

    assert asyncio.run(read()) == NodeAnswer({"node-1": PowerReading("gateway", 412.5, 7.0)}, {})


def test_the_line_of_the_tier_is_one() -> None:
    line = PAGE.partition("The line is `")[2].partition("`")[0]
    tier = eval(line, {"Tier": Tier})
    assert tier.reader == "joulie.sources.power.gateway:READER"


def test_the_lab_measure_multiplies_energy_and_time() -> None:
    (measure,) = example("A lab measure")["MEASURES"]
    run: Any = SimpleNamespace(facility_kwh=3.0, counted=SimpleNamespace(makespan_s=7200.0))
    assert measure.of(run) == pytest.approx(6.0)
