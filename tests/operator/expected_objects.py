"""What the objects must say: exactly what `joulie plan` and `joulie twin` say for the same cluster."""

from __future__ import annotations

import math
from collections.abc import Mapping

from joulie.cluster.port import NODE_TWINS, NODES
from joulie.model.rfc3339 import format_time
from tests.operator.clusters import Body, Person
from tests.support.cli_runner import joulie

DEADBAND = 2.0  # points of a score, percent of a node's maximum power
_SCORES = (
    "predictedPowerHeadroomScore",
    "predictedCoolingStressScore",
    "predictedPsuStressScore",
    "hardwareDensityScore",
)


class Expected:
    """The plan for objects at one moment, by the command line."""

    def __init__(self, objects: bytes, env: Mapping[str, str], now_s: float) -> None:
        at = ("--now", format_time(now_s))
        decided = joulie("plan", "-f", "-", "-o", "json", *at, stdin=objects, env=env)
        predicted = joulie("twin", "-f", "-", "-o", "json", *at, stdin=objects, env=env)
        assert decided.code == predicted.code == 0, decided.err + predicted.err
        self.policy: str = decided.document["policy"]
        self.nodes: dict[str, Body] = {item["node"]: item for item in decided.document["nodes"]}
        self.statuses: dict[str, Body] = {item["node"]: item["status"] for item in predicted.document}

    def states(self) -> dict[str, str]:
        return {name: node["state"] for name, node in self.nodes.items()}


async def assert_as_planned(
    person: Person, expected: Expected, *, pinned: frozenset[str] = frozenset(), exact: bool = False
) -> None:
    """Twins and labels say what the plan said; nothing is missing and nothing is there twice.

    `exact`: every status was just written; otherwise what is measured may lie within the deadband.
    """
    twins = await person.all(NODE_TWINS)
    nodes = await person.all(NODES)
    assert set(twins) == set(expected.statuses)
    for name, planned in expected.nodes.items():
        chosen_by = "pinned" if name in pinned else expected.policy
        assert twins[name]["spec"] == _spec(name, planned, chosen_by), name
        labels = nodes[name]["metadata"]["labels"]
        assert labels["joulie.io/power-profile"] == planned["profile"]
        assert labels["joulie.io/draining"] == ("true" if planned["draining"] else "false")
    for name, status in expected.statuses.items():
        draining = {each["type"]: each for each in twins[name]["status"]["conditions"]}["Draining"]
        assert draining["status"] == str(status["schedulableClass"] == "draining"), name
        assert draining["observedGeneration"] == twins[name]["metadata"]["generation"], name
        _assert_alike(name, _operators_part(twins[name]["status"]), status, exact)
    for name, body in nodes.items():
        if name not in expected.statuses:
            assert not {"joulie.io/power-profile", "joulie.io/draining"} & set(body["metadata"].get("labels", {}))


def _spec(node: str, planned: Body, chosen_by: str) -> Body:
    caps = planned["cpu"]
    cpu = {"packagePowerCapWatts": caps["capWatts"], "packagePowerCapPctOfMax": caps["capPct"]}
    spec: Body = {
        "nodeName": node,
        "profile": planned["profile"],
        "cpu": _set(cpu),
        "policy": {"name": chosen_by},
        "scheduling": {"draining": planned["draining"]},
    }
    if planned["gpu"] is not None:
        cap = {"capWattsPerGpu": planned["gpu"]["capWattsPerGpu"], "capPctOfMax": planned["gpu"]["capPct"]}
        spec["gpu"] = {"powerCap": {"scope": "perGpu", **_set(cap)}}
    return spec


def _set(fields: Body) -> Body:
    return {key: value for key, value in fields.items() if value is not None}


def _operators_part(status: Body) -> Body:
    return {key: value for key, value in status.items() if key not in ("controlStatus", "conditions")}


def _assert_alike(node: str, written: Body, expected: Body, exact: bool) -> None:
    assert set(written) == set(expected), node
    if exact:
        assert written == expected, node
        return
    assert written["schedulableClass"] == expected["schedulableClass"], node
    assert written["effectiveCapState"] == expected["effectiveCapState"], node
    for score in _SCORES:
        assert math.isclose(written[score], expected[score], rel_tol=0, abs_tol=DEADBAND + 1e-9), (node, score)
    power, wanted = written["powerMeasurement"], expected["powerMeasurement"]
    band_w = wanted["nodeTdpW"] * DEADBAND / 100 + 1e-9
    for key, value in wanted.items():
        if key == "source":
            assert power[key] == value
        elif key != "powerTrendWPerMin":  # files know no past
            assert math.isclose(power[key], value, rel_tol=0, abs_tol=band_w), (node, key)
