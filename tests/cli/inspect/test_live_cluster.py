"""Looking at a live cluster: status, top, plan, explain, score, for people and programs, also through kubectl."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from testbed.credentials import write_kubeconfig
from tests.agent.chain import JOULIE
from tests.cli.installation import NODES, Installation, Object
from tests.support.cli_runner import joulie
from tests.support.rights import NAMESPACE

CAPPED, FULL = "node-00002", "node-00001"


def pod(name: str, node: str = "", **annotations: str) -> Object:
    spec: Object = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "4"}}}]}
    if node:
        spec["nodeName"] = node
    shown = {f"joulie.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
    metadata = {"name": name, "namespace": "default", "annotations": shown}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


# --- status and top ------------------------------------------------------------------------------------------------


def test_status_shows_what_the_twins_say(there: Installation) -> None:
    view = there.run("status", "-o", "json").document
    twins = there.chain.twins()
    drawn_w = sum(twin["status"]["powerMeasurement"]["measuredNodePowerW"] for twin in twins.values())
    assert view["powerW"] == pytest.approx(drawn_w, rel=0.05)  # it moves between two looks
    assert view["nodes"] == view["asked"] == view["enforced"] == NODES
    assert view["states"] == {"performance": 3, "eco": 3, "draining": 0, "unknown": 0}
    assert view["sources"] == {"http": NODES}
    assert view["facts"]["leader"]
    assert [finding for finding in view["attention"] if finding["severity"] == "fault"] == []


def test_status_for_people_has_power_states_racks_and_what_is_enforced(there: Installation) -> None:
    outcome = there.run("status", POWER_BUDGET_WATTS="20000")
    assert outcome.code == 0
    assert re.search(
        r"^[\d.]+ kW drawn, [\d.]+ kW allowed · \d+ % of the budget of 20.0 kW$", outcome.out, re.MULTILINE
    )
    assert "3 ■ performance   3 ■ eco   0 ■ draining   enforced 6/6" in outcome.out
    assert re.search(r"^rack-000 +[\d.]+ kW of 50.0 kW +[█░]{20} +3 performance, 3 eco$", outcome.out, re.MULTILINE)
    assert "leader " in outcome.out.splitlines()[0]


def test_top_without_a_terminal_prints_once_in_the_order_asked_for(there: Installation) -> None:
    document = there.run("top", "--sort", "power", "-o", "json").document
    powers = [node["powerW"] for node in document]
    assert powers == sorted(powers, reverse=True)
    lines = there.run("top", "--sort", "name").out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("node-")] == there.names


def test_top_in_a_terminal_is_live_and_takes_keys(there: Installation) -> None:
    """It shows a pin that is made meanwhile, changes its order, and leaves the terminal as it was."""
    terminal, theirs = pty.openpty()
    env = {"PATH": os.environ["PATH"], "KUBECONFIG": str(there.plane.kubeconfig), "HOME": str(there.folder)}
    size = {"TERM": "xterm", "COLUMNS": "140", "LINES": "30"}
    before = termios.tcgetattr(theirs)
    process = subprocess.Popen(
        [sys.executable, "-m", "joulie", "top"], stdin=theirs, stdout=theirs, stderr=theirs, env={**env, **size}
    )
    try:
        screen = _read_until(terminal, "by power")
        assert all(name in screen for name in there.names)
        os.write(terminal, b"h")
        _read_until(terminal, "by headroom")
        there.run("pin", FULL, "eco")
        _read_until(terminal, f"{FULL} (pinned)")
        there.run("unpin", FULL)
        os.write(terminal, b"q")
        _read_until(terminal, "\x1b[?1049l")  # back from the alternate screen
        assert process.wait(20) == 0
        assert termios.tcgetattr(theirs) == before
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
        os.close(theirs)


def _read_until(terminal: int, wanted: str, timeout_s: float = 40.0) -> str:
    seen, deadline_s = "", time.monotonic() + timeout_s
    while wanted not in seen:
        assert time.monotonic() < deadline_s, f"no {wanted!r} in {seen[-2000:]!r}"
        if select.select([terminal], [], [], 0.2)[0]:
            seen += os.read(terminal, 65536).decode(errors="replace")
    return seen


# --- plan ----------------------------------------------------------------------------------------------------------


def test_a_plan_that_is_in_force_changes_nothing(there: Installation) -> None:
    outcome = there.run("plan", STATIC_HP_FRAC="0.5")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("nothing would change")
    assert "node-0" not in outcome.out


def test_a_plan_with_other_settings_shows_the_difference_alone(there: Installation) -> None:
    outcome = there.run("plan", STATIC_HP_FRAC="0.2")
    changed = [line for line in outcome.out.splitlines() if line.startswith("node-")]
    assert [line.split()[0] for line in changed] == ["node-00004", "node-00001"]
    assert all("■ performance  ■ eco" in line and "100 % → 60 %" in line for line in changed)
    assert "2 nodes would change, 4 unchanged" in outcome.out
    assert len([line for line in there.run("plan", "--all").out.splitlines() if line.startswith("node-")]) == NODES


def test_the_plan_of_a_live_cluster_is_the_plan_of_its_objects(there: Installation, kubectl: Path) -> None:
    """With the same JSON, whichever way the objects come."""
    kinds = "nodes,pods,nodehardwares,nodetwins,nodepowerprofiles"
    command = [str(kubectl), "--kubeconfig", str(there.plane.kubeconfig), "get", kinds, "-A", "-o", "json"]
    objects = subprocess.run(command, capture_output=True, check=True).stdout
    from_files = joulie("plan", "-f", "-", "-o", "json", stdin=objects)
    assert there.run("plan", "-o", "json").document == from_files.document


def test_settings_of_the_operator_that_runs_there_count(there: Installation) -> None:
    environment = [
        {"name": "STATIC_HP_FRAC", "value": "0.2"},
        {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "a"}}},
    ]
    labels = {"app.kubernetes.io/name": "joulie", "app.kubernetes.io/component": "operator"}
    container = {"name": "operator", "image": "joulie", "env": environment[:1]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "joulie-operator", "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    with there.added(deployment):
        assert there.run("plan", "-o", "json").document["summary"]["performance"] == 1
        assert there.run("plan", "-o", "json", STATIC_HP_FRAC="0.5").document["summary"]["performance"] == 3


# --- explain and score ---------------------------------------------------------------------------------------------


def test_a_node_is_explained_as_it_is_now(there: Installation) -> None:
    words = there.run("explain", "node", CAPPED).out
    assert "is capped to CPU 60 % and GPU 60 % (chosen by static_partition); performance-only pods stay away" in words
    assert "its agent reports that the caps are applied (via http)" in words
    assert "runs at full power (chosen by static_partition)" in there.run("explain", "node", FULL).out
    outcome = there.run("explain", "node", "node-0002")
    assert outcome.complaint.startswith("node 'node-0002' is not in the cluster; did you mean ")


def test_a_pod_is_explained_where_it_waits_and_where_it_runs(there: Installation) -> None:
    with there.added(pod("waiting"), pod("running", FULL)):
        waiting = there.run("explain", "pod", "default/waiting")
        running = there.run("explain", "pod", "default/running")
        document = there.run("explain", "pod", "default/running", "-o", "json").document
        scores = there.run("score", "--pod", "default/waiting", "-o", "json").document
    assert re.search(
        r"^default/waiting · standard, 4 cores · would go to node-\d+ \(score [\d.]+\)$", waiting.out, re.MULTILINE
    )
    assert f"is on {FULL} (score " in running.out
    assert document["node"] == FULL
    assert [node["node"] for node in scores["nodes"]] == there.names
    assert all(node["breakdown"] for node in scores["nodes"])


def test_the_twins_of_a_live_cluster_keep_their_measurement(there: Installation) -> None:
    document = there.run("twin", "-o", "json").document
    assert {twin["status"]["powerMeasurement"]["source"] for twin in document} == {"http"}


# --- kubectl, completion, faults -----------------------------------------------------------------------------------


def test_it_is_a_plugin_of_kubectl(there: Installation, kubectl: Path) -> None:
    env = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "KUBECONFIG": str(there.plane.kubeconfig),
        "HOME": str(there.folder),
    }
    outcome = subprocess.run([kubectl, "joulie", "status"], capture_output=True, text=True, check=True, env=env)
    assert "enforced 6/6" in outcome.stdout
    outcome = subprocess.run([kubectl, "joulie", "stats"], capture_output=True, text=True, check=False, env=env)
    assert outcome.returncode == 2
    assert "did you mean 'status'? see: kubectl joulie --help" in outcome.stderr


def test_names_of_nodes_and_pods_are_completed(there: Installation) -> None:
    def offered(line: str) -> list[str]:
        words = {"_JOULIE_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        outcome = there.run(**words)
        assert (outcome.code, outcome.err) == (0, "")
        return [entry.removeprefix("plain,") for entry in outcome.out.splitlines()]

    assert offered("joulie pin node-0000") == there.names
    assert offered("joulie explain node node-00002") == [CAPPED]
    with there.added(pod("waiting")):
        assert offered("joulie explain pod default/") == ["default/waiting"]
    nowhere = {"_JOULIE_COMPLETE": "bash_complete", "COMP_WORDS": "joulie pin n", "COMP_CWORD": "2"}
    assert joulie(env={**nowhere, "HOME": str(there.folder), "KUBECONFIG": "/nowhere"}) == (0, "\n", "")


def test_a_missing_right_is_named_with_its_verb(there: Installation, tmp_path: Path) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody", "namespace": NAMESPACE}}
    with there.added(account):
        token = there.plane.service_account_token(NAMESPACE, "nobody")
        config = write_kubeconfig(tmp_path / "nobody", there.plane.url, there.plane.ca_file, token)
        for command in (["plan"], ["status"], ["doctor"], ["pin", FULL, "eco"], ["cleanup", "--yes"]):
            outcome = there.run_as(config, *command)
            assert outcome.code == 1
            assert f"system:serviceaccount:{NAMESPACE}:nobody is not allowed to list " in outcome.complaint
            assert "kubectl auth can-i list" in outcome.complaint


def test_a_token_that_is_refused_and_a_server_that_is_away_say_the_next_step(
    there: Installation, tmp_path: Path
) -> None:
    refused = write_kubeconfig(tmp_path / "refused", there.plane.url, there.plane.ca_file, "wrong")
    assert "rejects the credentials of" in there.run_as(refused, "status").complaint
    away = write_kubeconfig(tmp_path / "away", "https://127.0.0.1:1", there.plane.ca_file, "x")
    outcome = there.run_as(away, "status")
    assert outcome.code == 1
    assert "is the cluster up, and is it the right one?" in outcome.complaint
    assert "use another with --context" in outcome.complaint


def test_several_pages_of_objects_are_one_list(there: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    from joulie.cli import connection

    whole: Any = json.loads(there.run("plan", "-o", "json").out)
    monkeypatch.setattr(connection, "PAGE_SIZE", 2)
    assert there.run("plan", "-o", "json").document == whole


def test_nothing_was_written_by_looking(there: Installation) -> None:
    assert there.plane.api.get(f"{JOULIE}/nodepowerprofiles")["items"] == []
