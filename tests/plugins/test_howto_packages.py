"""The policy and the cooling model of the how-to pages, installed as a reader would install them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from joulie.control.policies import NodeView, PolicyView
from joulie.settings import PlanSettings
from tests.support.howto_pages import files_of, install, joulie

pytestmark = pytest.mark.slow

POLICY_PAGE = files_of("policy.md")
COOLING_PAGE = files_of("cooling.md")


def as_json(done: subprocess.CompletedProcess[str]) -> object:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def night_eco(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {name: POLICY_PAGE[name] for name in ("night_eco.py", "pyproject.toml")}
    return install(files, tmp_path_factory.mktemp("policy"))


@pytest.fixture(scope="module")
def chilled_door(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {name: COOLING_PAGE[name] for name in ("chilled_door.py", "pyproject.toml")}
    return install(files, tmp_path_factory.mktemp("cooling"))


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    file = tmp_path / "cluster.yaml"
    file.write_text(POLICY_PAGE["cluster.yaml"])
    return str(file)


def test_the_pages_policy_takes_ten_lines() -> None:
    body = POLICY_PAGE["night_eco.py"].split("class ")[1]
    assert len([line for line in body.splitlines() if line.strip()]) <= 10


@pytest.mark.parametrize(
    ("now", "profiles"),
    [
        ("2026-11-01T23:30:00Z", {"cpu-1": "performance", "cpu-2": "eco"}),
        ("2026-11-01T12:00:00Z", {"cpu-1": "performance", "cpu-2": "performance"}),
    ],
)
def test_the_pages_policy_plans_once_installed(
    night_eco: Path, cluster: str, now: str, profiles: dict[str, str]
) -> None:
    plan = as_json(
        joulie("plan", "-f", cluster, "--policy", "night_eco", "--now", now, "-o", "json", packages=night_eco)
    )
    assert isinstance(plan, dict)
    assert plan["policy"] == "night_eco"
    assert {node["node"]: node["profile"] for node in plan["nodes"]} == profiles
    assert all("h UTC" in node["reason"] for node in plan["nodes"])


def test_the_pages_policy_is_chosen_by_policy_type_too(night_eco: Path, cluster: str) -> None:
    plan = as_json(joulie("plan", "-f", cluster, "-o", "json", packages=night_eco, POLICY_TYPE="night_eco"))
    assert isinstance(plan, dict)
    assert plan["policy"] == "night_eco"


def test_an_installed_policy_is_among_the_allowed_ones(night_eco: Path, cluster: str) -> None:
    done = joulie("plan", "-f", cluster, packages=night_eco, POLICY_TYPE="day_eco")
    assert done.returncode == 2
    assert "POLICY_TYPE='day_eco'" in done.stderr
    assert "one of night_eco, queue_aware_v1, rule_swap_v1, static_partition" in done.stderr


def test_the_pages_policy_keeps_nothing_at_performance_in_a_night_without_demand() -> None:
    scope: dict[str, object] = {}
    exec(POLICY_PAGE["night_eco.py"], scope)
    policy = scope["NightEco"]()  # type: ignore[operator]
    node = NodeView("a", 1.0, "f", {}, "performance", 0, 100.0, 0.0, None)
    (choice,) = policy.plan(PolicyView((node,), 0, 3 * 3600.0, PlanSettings())).values()
    assert choice.profile == "eco"
    (choice,) = policy.plan(PolicyView((node,), 1, 3 * 3600.0, PlanSettings())).values()
    assert choice.profile == "performance"


def test_the_pages_cooling_model_is_what_the_twin_uses_once_installed(chilled_door: Path, cluster: str) -> None:
    arguments = ("twin", "-f", cluster, "--ambient", "28", "-o", "json")
    twins = as_json(joulie(*arguments, packages=chilled_door, COOLING_MODEL="chilled_door"))
    assert isinstance(twins, list)
    for twin in twins:
        status = twin["status"]
        power_w = status["powerMeasurement"]["nodeCappedPowerW"]
        assert status["predictedCoolingStressScore"] == pytest.approx(100 * power_w / (10_000 * 0.7))
