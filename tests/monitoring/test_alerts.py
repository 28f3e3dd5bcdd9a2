"""Every alert fires and resolves in Prometheus' own rule tests, stays quiet in a healthy cluster, and has a runbook."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.monitoring.cases import CASES, HEALTHY, Case
from tests.monitoring.expressions import RULES
from tests.support.howto_pages import files_of

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = ["What it means", "How to see it", "What to do", "How it resolves"]
ALERTS: dict[str, dict[str, Any]] = {
    rule["alert"]: rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
}


def tried(promtool: Path, folder: Path, *tests: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """promtool's own verdict on these tests of the rules."""
    file = folder / "tests.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": list(tests)}))
    return run(promtool, "test", "rules", str(file))


def run(promtool: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([promtool, *arguments], capture_output=True, text=True, check=False)


def expecting(series: dict[str, str], checks: Sequence[tuple[int, str, list[dict[str, Any]]]]) -> dict[str, Any]:
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [
            {"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": alerts} for minute, alert, alerts in checks
        ],
    }


def test_promtool_finds_the_rules_in_order(promtool: Path) -> None:
    done = run(promtool, "check", "rules", "--lint=all", "--lint-fatal", str(RULES))
    assert done.returncode == 0, done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(filter(None, [case.alert, case.what])))
def test_an_alert_fires_when_there_is_trouble_and_resolves_when_it_is_over(
    case: Case, promtool: Path, tmp_path: Path
) -> None:
    annotations = {**ALERTS[case.alert]["annotations"], "summary": case.summary}
    if case.description:
        annotations["description"] = case.description
    firing = {"exp_labels": case.labels, "exp_annotations": annotations}
    checks = [(case.quiet, case.alert, []), (case.fires, case.alert, [firing]), (case.over, case.alert, [])]
    done = tried(promtool, tmp_path, expecting(case.series, checks))
    assert done.returncode == 0, done.stderr + done.stdout


def test_no_alert_fires_in_a_healthy_cluster_whose_small_faults_pass(promtool: Path, tmp_path: Path) -> None:
    checks: list[tuple[int, str, list[dict[str, Any]]]] = [
        (minute, alert, []) for minute in range(5, 180, 5) for alert in ALERTS
    ]
    done = tried(promtool, tmp_path, expecting(HEALTHY, checks))
    assert done.returncode == 0, done.stderr + done.stdout


def test_promtool_would_have_noticed(promtool: Path, tmp_path: Path) -> None:
    leaderless = HEALTHY | {'joulie_operator_leader{instance="o1"}': "0x180"}
    done = tried(promtool, tmp_path, expecting(leaderless, [(60, "JoulieOperatorNoLeader", [])]))
    assert done.returncode != 0


def test_every_alert_is_tried() -> None:
    assert {case.alert for case in CASES} == set(ALERTS)


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_says_what_is_wrong_how_bad_it_is_and_where_to_read_on(alert: str) -> None:
    rule = ALERTS[alert]
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert rule["labels"]["severity"] in ("info", "warning", "critical")
    folder, _, page = rule["annotations"]["runbook_url"].partition("/")
    assert folder == "runbooks"
    text = (ROOT / "docs" / "runbooks" / page).with_suffix(".md").read_text()
    assert text.startswith(f"# {alert}\n")
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == SECTIONS


def test_every_runbook_belongs_to_an_alert_and_the_guide_lists_them_all() -> None:
    named = {Path(rule["annotations"]["runbook_url"]).stem for rule in ALERTS.values()}
    assert {page.stem for page in (ROOT / "docs" / "runbooks").glob("*.md")} == named
    guide = (ROOT / "docs" / "how-to" / "monitoring.md").read_text()
    for alert, rule in ALERTS.items():
        page = Path(rule["annotations"]["runbook_url"]).with_suffix(".md").as_posix()
        assert f"| [{alert}](../{page}) | {rule['labels']['severity']} | {rule['for']} |" in guide


def test_prometheus_takes_the_configuration_that_the_guide_shows(promtool: Path, tmp_path: Path) -> None:
    shown = yaml.safe_load(files_of("monitoring.md")["prometheus.yml"])
    # Debian builds its Prometheus without discovery in Kubernetes; all else is as shown.
    assert shown["scrape_configs"][0].pop("kubernetes_sd_configs") == [
        {"role": "pod", "namespaces": {"names": ["joulie-system"]}}
    ]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(shown))
    (tmp_path / RULES.name).write_text(RULES.read_text())
    done = run(promtool, "check", "config", str(tmp_path / "prometheus.yml"))
    assert done.returncode == 0, done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout
