"""What the chart makes of its values, without a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from joulie.settings import COMPONENTS, describe
from tests.chart.charts import (
    CHART,
    MATRIX,
    SCHEDULER_IMAGE,
    SIMULATED,
    Helm,
    container,
    environment,
    find,
    named,
    pod_template,
)
from tests.support.rights import Rights

pytestmark = pytest.mark.slow

WORKLOADS = ("Deployment", "DaemonSet", "StatefulSet", "Job")
EVERYTHING: dict[str, Any] = {
    "monitoring": {"enabled": True, "documentationUrl": "https://docs.example.com/joulie/"},
    "scheduler": {"enabled": True, "image": SCHEDULER_IMAGE},
}


@pytest.mark.parametrize("values", MATRIX.values(), ids=MATRIX)
def test_every_object_can_be_told_as_this_releases(helm: Helm, values: dict[str, Any]) -> None:
    manifests = helm.render(values, namespace="energy", name="power")
    assert manifests
    for manifest in manifests:
        labels = manifest["metadata"]["labels"]
        assert labels["app.kubernetes.io/instance"] == "power"
        assert labels["app.kubernetes.io/name"] == "joulie"
        assert "joulie-system" not in json.dumps(manifest)
        if manifest["kind"] in WORKLOADS:
            template = pod_template(manifest)["metadata"]["labels"]
            assert template["app.kubernetes.io/component"] == labels["app.kubernetes.io/component"]
            assert template["app.kubernetes.io/version"] == labels["app.kubernetes.io/version"]
            assert "helm.sh/chart" not in template  # else a new chart alone would replace every pod
    identities = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in manifests]
    assert len(identities) == len(set(identities))


@pytest.mark.parametrize("component", ["operator", "agent", "extender", "simulator", "cleanup"])
def test_the_rights_are_those_that_are_tested_one_by_one(helm: Helm, component: str) -> None:
    # A pool's are the same under another name, which admission/test_agents.py tries.
    manifests = helm.render(SIMULATED if component == "simulator" else {})
    for right in Rights(component).all():
        kind = "ClusterRole" if not right.namespace else "Role"
        assert any(
            right.resource in rule["resources"] and right.verb in rule["verbs"]
            for rule in find(manifests, kind, right.role)["rules"]
        )
    roles = {right.role for right in Rights(component).all()}
    given = named(manifests, "ClusterRole") | named(manifests, "Role")
    assert roles == {role for role in given if role.startswith(f"joulie-{component}")}


def test_the_agent_is_root_without_a_single_capability_and_sits_on_every_managed_node(helm: Helm) -> None:
    agent = find(helm.render(), "DaemonSet", "joulie-agent")
    spec = pod_template(agent)["spec"]
    assert container(agent)["securityContext"] == {
        "runAsUser": 0,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["nodeSelector"] == {"kubernetes.io/os": "linux", "joulie.io/managed": "true"}
    assert spec["priorityClassName"] == "system-node-critical"
    assert {volume["hostPath"]["path"] for volume in spec["volumes"] if "hostPath" in volume} == {
        "/sys",
        "/var/lib/joulie",
    }
    assert not any(key in spec for key in ("hostNetwork", "hostPID", "runtimeClassName"))


def test_where_agents_run_can_be_chosen(helm: Helm) -> None:
    chosen = {"nodeSelector": {"joulie.io/managed": None, "rack": "r1"}, "tolerations": []}
    spec = pod_template(find(helm.render({"agent": {"daemonset": chosen}}), "DaemonSet", "joulie-agent"))["spec"]
    assert spec["nodeSelector"] == {"kubernetes.io/os": "linux", "rack": "r1"}
    assert "tolerations" not in spec


def test_a_pool_tolerates_no_taint_of_a_fake_node(helm: Helm) -> None:
    """On which KWOK would call it running, and nothing would run."""
    agent = {"mode": "pool", "daemonset": {"tolerations": [{"operator": "Exists"}]}}
    spec = pod_template(find(helm.render({**SIMULATED, "agent": agent}), "StatefulSet", "joulie-agent"))["spec"]
    assert "tolerations" not in spec
    assert spec["nodeSelector"] == {"kubernetes.io/os": "linux"}
    place = {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "t"}], "affinity": {"podAntiAffinity": {}}}
    agent = {"mode": "pool", "pool": place}
    spec = pod_template(find(helm.render({**SIMULATED, "agent": agent}), "StatefulSet", "joulie-agent"))["spec"]
    assert (spec["nodeSelector"]["a"], spec["tolerations"], spec["affinity"]) == (
        "b",
        place["tolerations"],
        place["affinity"],
    )


def test_the_agent_has_time_to_put_everything_back(helm: Helm) -> None:
    from joulie.agent.process import LAST_WORDS_S, PUT_BACK_S

    grace_s = pod_template(find(helm.render(), "DaemonSet", "joulie-agent"))["spec"]["terminationGracePeriodSeconds"]
    assert grace_s >= PUT_BACK_S + LAST_WORDS_S + 10


def test_more_power_over_the_host_is_given_only_when_asked_for_and_only_where_it_is_needed(helm: Helm) -> None:
    manifests = helm.render({"agent": {"nvidia": {"enabled": True}, "hsmp": {"enabled": True, "nodeLabel": "cpu=amd"}}})
    agents = {one["metadata"]["name"]: one for one in manifests if one["kind"] == "DaemonSet"}
    plain, nvidia, hsmp, both = (f"joulie-agent{kind}" for kind in ("", "-nvidia", "-hsmp", "-nvidia-hsmp"))
    security = {name: container(one)["securityContext"] for name, one in agents.items()}
    assert set(security) == {plain, nvidia, hsmp, both}
    assert security[plain] == container(find(helm.render(), "DaemonSet", "joulie-agent"))["securityContext"]
    assert security[nvidia]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_ADMIN"]}
    assert security[hsmp]["privileged"]
    assert security[both]["privileged"]
    classes = {name: pod_template(one)["spec"].get("runtimeClassName") for name, one in agents.items()}
    assert classes == {plain: None, nvidia: "nvidia", hsmp: None, both: "nvidia"}
    for labels in (
        {},
        {"nvidia.com/gpu.present": "true"},
        {"cpu": "amd"},
        {"cpu": "amd", "nvidia.com/gpu.present": "true"},
    ):
        assert sum(_may_run(agent, labels) for agent in agents.values()) == 1, labels
    assert _may_run(agents[plain], {"cpu": "intel"})
    assert _may_run(agents[both], {"cpu": "amd", "nvidia.com/gpu.present": "true"})
    selectors = [tuple(one["spec"]["selector"]["matchLabels"].items()) for one in agents.values()]
    assert len(set(selectors)) == len(selectors)
    allowed = {name for right in Rights("cleanup").all() if right.resource == "daemonsets" for name in (right.name,)}
    assert set(agents) <= allowed


def test_kubelets_socket_is_mounted_only_when_asked_for_and_read_only(helm: Helm) -> None:
    def mounts(values: dict[str, Any]) -> dict[str, Any]:
        agent = find(helm.render(values), "DaemonSet", "joulie-agent")
        folders = {one["name"]: one.get("hostPath", {}).get("path") for one in pod_template(agent)["spec"]["volumes"]}
        return {folders[one["name"]]: one.get("readOnly", False) for one in container(agent)["volumeMounts"]}

    asked = mounts({"agent": {"podResources": {"enabled": True}}})
    assert asked == {**mounts({}), "/var/lib/kubelet/pod-resources": True}


def _may_run(daemon_set: dict[str, Any], labels: dict[str, str]) -> bool:
    affinity = pod_template(daemon_set)["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return all(
        (labels.get(rule["key"]) in rule["values"]) == (rule["operator"] == "In") for rule in term["matchExpressions"]
    )


def test_a_dry_run_writes_to_no_device_and_changes_no_pod(helm: Helm) -> None:
    manifests = helm.render({"dryRun": True})
    agent = find(manifests, "DaemonSet", "joulie-agent")
    assert environment(agent)["SIMULATE_ONLY"] == "true"
    (mount,) = (one for one in container(agent)["volumeMounts"] if one["mountPath"] == "/host-sys")
    assert (mount["readOnly"], mount["recursiveReadOnly"]) == (True, "IfPossible")  # else /sys/fs/… stays writable
    assert named(manifests, "MutatingAdmissionPolicy") == set()
    assert named(helm.render(), "MutatingAdmissionPolicy") == {"joulie-performance-affinity"}


def test_ports_are_those_that_the_processes_listen_on(helm: Helm) -> None:
    manifests = helm.render(SIMULATED)
    listening = {"METRICS_ADDR": "metrics", "EXTENDER_ADDR": "extender", "SIM_ADDR": "metrics"}
    for component, settings in COMPONENTS.items():
        workload = find(manifests, "StatefulSet" if component == "agent" else "Deployment", f"joulie-{component}")
        ports = {port["name"]: f":{port['containerPort']}" for port in container(workload)["ports"]}
        defaults = {one.variable: one.default for one in describe(settings, {})}
        assert ports == {name: defaults[variable] for variable, name in listening.items() if variable in defaults}


def test_operator_and_agents_agree_on_the_nodes(helm: Helm) -> None:
    scope = "joulie.io/rack in (r1,r2)"
    manifests = helm.render({"managedNodes": scope})
    assert environment(find(manifests, "Deployment", "joulie-operator"))["NODE_SELECTOR"] == scope
    assert environment(find(manifests, "DaemonSet", "joulie-agent"))["POOL_NODE_SELECTOR"] == scope


def test_the_policy_speaks_of_the_label_that_the_operator_writes(helm: Helm) -> None:
    manifests = helm.render({"settings": {"POWER_PROFILE_LABEL": "example.com/profile"}})
    policy = json.dumps(find(manifests, "MutatingAdmissionPolicy", "joulie-performance-affinity"))
    assert "example.com/profile" in policy
    assert "joulie.io/power-profile" not in policy
    for name in ("joulie-operator", "joulie-extender"):
        assert environment(find(manifests, "Deployment", name))["POWER_PROFILE_LABEL"] == "example.com/profile"
    (variable,) = (one["value"] for one in container(find(manifests, "Job", "joulie-cleanup"))["env"] if "value" in one)
    assert variable == "example.com/profile"


def test_the_policy_is_left_out_where_the_api_server_does_not_know_it(helm: Helm) -> None:
    assert "MutatingAdmissionPolicy" not in helm.template()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, None),
        ({"settings": {"ENABLE_FACILITY_METRICS": True}}, "true"),
        ({"agent": {"mode": "pool"}, "simulator": {"enabled": True}}, "true"),
    ],
)
def test_operator_and_extender_are_told_of_the_facility_in_one_place(
    helm: Helm, values: dict[str, Any], expected: str | None
) -> None:
    manifests = helm.render(values)
    for name in ("joulie-operator", "joulie-extender"):
        assert environment(find(manifests, "Deployment", name)).get("ENABLE_FACILITY_METRICS") == expected


def test_a_pool_shares_the_nodes_and_keeps_what_it_found(helm: Helm) -> None:
    manifests = helm.render({"agent": {"mode": "pool", "pool": {"replicas": 3}}, "simulator": {"enabled": True}})
    pool = find(manifests, "StatefulSet", "joulie-agent")
    assert (pool["spec"]["replicas"], environment(pool)["POOL_SHARDS"]) == (3, "3")
    assert pool["spec"]["volumeClaimTemplates"][0]["metadata"]["name"] == "state"
    simulator = "http://joulie-simulator.joulie-system.svc:18080"
    assert environment(pool)["TELEMETRY_CPU_CONTROL_HTTP_ENDPOINT"] == f"{simulator}/control/{{node}}"
    assert named(manifests, "DaemonSet") == set()
    own = {"TELEMETRY_CPU_HTTP_ENDPOINT": "http://elsewhere/{node}"}
    manifests = helm.render({"agent": {"mode": "pool", "settings": own}, "simulator": {"enabled": True}})
    assert environment(find(manifests, "StatefulSet", "joulie-agent")) | own == environment(
        find(manifests, "StatefulSet", "joulie-agent")
    )


def test_the_second_scheduler_asks_this_releases_extender(helm: Helm) -> None:
    manifests = helm.render(EVERYTHING, namespace="energy")
    config = yaml.safe_load(find(manifests, "ConfigMap", "joulie-scheduler")["data"]["config.yaml"])
    shipped = yaml.safe_load((CHART / "files/scheduler/second-scheduler.yaml").read_text())
    assert config["extenders"][0].pop("urlPrefix") == "http://joulie-scheduler-extender.energy.svc:9876"
    assert config["leaderElection"].pop("resourceNamespace") == "energy"
    shipped["extenders"][0].pop("urlPrefix")
    shipped["leaderElection"].pop("resourceNamespace")
    assert config == shipped
    secure = helm.render({**EVERYTHING, "extender": {"tls": {"secretName": "tls"}}})
    extender = yaml.safe_load(find(secure, "ConfigMap", "joulie-scheduler")["data"]["config.yaml"])["extenders"][0]
    assert extender["urlPrefix"].startswith("https://")
    assert extender["tlsConfig"] == {"caFile": "/etc/joulie/tls/ca.crt"}


@pytest.mark.parametrize(
    ("release", "service"),
    [("joulie", "joulie-scheduler-extender"), ("power", "power-joulie-scheduler-extender"),
     ("my-joulie", "my-joulie-scheduler-extender")],
)  # fmt: skip
def test_the_extender_is_found_under_the_name_that_configurations_have(helm: Helm, release: str, service: str) -> None:
    manifests = helm.render(EVERYTHING, name=release)
    assert service in named(manifests, "Service")
    config = yaml.safe_load(find(manifests, "ConfigMap", "joulie-scheduler")["data"]["config.yaml"])
    assert config["extenders"][0]["urlPrefix"] == f"http://{service}.joulie-system.svc:9876"
    for name in ("second-scheduler", "default-scheduler"):
        shipped = yaml.safe_load((CHART / f"files/scheduler/{name}.yaml").read_text())
        assert "//joulie-scheduler-extender.joulie-system.svc" in shipped["extenders"][0]["urlPrefix"]


def test_nothing_that_the_scheduler_waits_for_waits_for_the_scheduler(helm: Helm) -> None:
    manifests = helm.render(EVERYTHING)
    for name in ("joulie-extender", "joulie-scheduler"):
        assert pod_template(find(manifests, "Deployment", name))["spec"]["schedulerName"] == "default-scheduler"
    assert "joulie.io/workload-class" not in json.dumps([one for one in manifests if one["kind"] in WORKLOADS])


def test_monitoring_carries_rules_and_dashboards_as_they_are(helm: Helm) -> None:
    manifests = helm.render(EVERYTHING)
    rules = find(manifests, "PrometheusRule", "joulie")["spec"]
    text = (CHART / "files/alerts.yaml").read_text()
    linked = text.replace("runbook_url: runbooks/", "runbook_url: https://docs.example.com/joulie/runbooks/")
    assert linked != text
    assert rules == yaml.safe_load(linked)
    boards = {path.name: json.loads(path.read_text()) for path in (CHART / "files/dashboards").glob("*.json")}
    shipped: dict[str, Any] = {}
    for manifest in manifests:
        if manifest["metadata"]["labels"].get("grafana_dashboard") == "1":
            shipped |= {name: json.loads(board) for name, board in manifest["data"].items()}
    assert shipped == boards
    assert boards
    ports = {
        name: [port["name"] for port in container(one)["ports"]]
        for one in manifests
        if one["kind"] in WORKLOADS and (name := one["metadata"]["name"]) not in ("joulie-cleanup", "joulie-scheduler")
    }
    assert all("metrics" in names for names in ports.values())


def test_what_a_service_leads_to_is_open_in_the_network_policy(helm: Helm) -> None:
    manifests = helm.render(SIMULATED)
    for service in (one for one in manifests if one["kind"] == "Service"):
        component = service["metadata"]["labels"]["app.kubernetes.io/component"]
        policy = find(manifests, "NetworkPolicy", f"joulie-{component}")
        assert policy["spec"]["podSelector"]["matchLabels"] == service["spec"]["selector"]
        opened = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
        assert {port["port"] for port in service["spec"]["ports"]} == opened


def test_cleanup_and_its_rights_exist_only_before_an_uninstall(helm: Helm) -> None:
    hooks = [one for one in helm.render() if one["metadata"]["labels"]["app.kubernetes.io/component"] == "cleanup"]
    assert {one["kind"] for one in hooks} == {
        *("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Job"),
    }
    for hook in hooks:
        annotations = hook["metadata"]["annotations"]
        assert annotations["helm.sh/hook"] == "pre-delete"
        assert annotations["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"
        assert int(annotations.get("helm.sh/hook-weight", 0)) == (0 if hook["kind"] == "Job" else -1)


def test_cleanup_runs_wherever_the_operator_may_and_is_given_the_time_that_agents_get(helm: Helm) -> None:
    place = {"nodeSelector": {"pool": "infra"}, "tolerations": [{"key": "infra", "operator": "Exists"}]}
    for timeout, seconds in (("2m", 120), ("1h30m", 5400), ("1.5s", 2)):
        job = find(helm.render({"operator": place, "cleanup": {"timeout": timeout}}), "Job", "joulie-cleanup")
        assert job["spec"]["activeDeadlineSeconds"] == 480 + seconds
        spec = pod_template(job)["spec"]
        assert spec["nodeSelector"] == {"kubernetes.io/os": "linux", "pool": "infra"}
        assert spec["tolerations"] == place["tolerations"]


def test_the_package_holds_everything_and_nothing_else(helm: Helm, tmp_path: Path) -> None:
    import tarfile

    helm.run("package", str(CHART), "--destination", str(tmp_path))
    (archive,) = tmp_path.glob("joulie-*.tgz")
    with tarfile.open(archive) as package:
        names = {name.removeprefix("joulie/") for name in package.getnames()}
    assert names == {path.relative_to(CHART).as_posix() for path in CHART.rglob("*") if path.is_file()}
