"""Watts as a resource is off by default, and one value brings everything that it needs."""

from __future__ import annotations

import pytest

from tests.chart.charts import POLICY_API, Helm, Manifest, Refused, find

ON: Manifest = {"wattsResource": {"enabled": True}}


def watts_objects(manifests: list[Manifest]) -> set[tuple[str, str]]:
    found = ((one["kind"], one["metadata"]["name"]) for one in manifests)
    return {(kind, name) for kind, name in found if "watts" in name}


def operator_env(manifests: list[Manifest]) -> dict[str, str]:
    (container,) = find(manifests, "Deployment", "joulie-operator")["spec"]["template"]["spec"]["containers"]
    return {one["name"]: one.get("value", "") for one in container["env"]}


@pytest.mark.parametrize("values", [{}, {**ON, "dryRun": True}], ids=["by default", "in a dry run"])
def test_nothing_of_it_is_there(helm: Helm, values: Manifest) -> None:
    manifests = helm.render(values)
    assert watts_objects(manifests) == set()
    assert "WATTS_RESOURCE" not in operator_env(manifests)


def test_enabled_it_has_policies_a_right_and_the_setting(helm: Helm) -> None:
    manifests = helm.render(ON)
    assert watts_objects(manifests) == {
        ("MutatingAdmissionPolicy", "joulie-watts"),
        ("MutatingAdmissionPolicyBinding", "joulie-watts"),
        ("ValidatingAdmissionPolicy", "joulie-watts-annotation"),
        ("ValidatingAdmissionPolicyBinding", "joulie-watts-annotation"),
        ("ClusterRole", "joulie-operator-watts"),
        ("ClusterRoleBinding", "joulie-operator-watts"),
    }
    assert operator_env(manifests)["WATTS_RESOURCE"] == "true"
    (rule,) = find(manifests, "ClusterRole", "joulie-operator-watts")["rules"]
    assert rule == {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]}


def test_removal_keeps_the_right_alone(helm: Helm) -> None:
    manifests = helm.render({"wattsResource": {"removal": True}})
    assert {name for _, name in watts_objects(manifests)} == {"joulie-operator-watts"}
    assert "WATTS_RESOURCE" not in operator_env(manifests)


def test_the_table_and_the_namespace_are_those_of_the_release(helm: Helm) -> None:
    values = {"wattsResource": {"enabled": True, "table": {"cpu": "4.5", "example.com/npu": 300}}}
    manifests = helm.render(values, namespace="power")
    policy = find(manifests, "MutatingAdmissionPolicy", "joulie-watts")["spec"]
    (table,) = (one["expression"] for one in policy["variables"] if one["name"] == "table")
    for entry in ("'cpu': 4.500", "'example.com/npu': 300.000", "'minimum': 10.000", "'nvidia.com/gpu': 1034.000"):
        assert entry in table
    for one in (policy, find(manifests, "ValidatingAdmissionPolicy", "joulie-watts-annotation")["spec"]):
        (left_out,) = one["matchConstraints"]["namespaceSelector"]["matchExpressions"]
        assert left_out["values"] == ["kube-system", "power"]


def test_it_is_refused_where_the_api_server_could_not_give_pods_their_watts(helm: Helm) -> None:
    with pytest.raises(Refused, match=f"--api-versions {POLICY_API}"):
        helm.template(ON, "--api-versions=admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy")
    helm.template(ON, "--api-versions", POLICY_API)


@pytest.mark.parametrize(
    "values",
    [
        {"wattsResource": {"table": {"cpu": "much"}}},
        {"wattsResource": {"table": {"cpu": -1}}},
        {"wattsResource": {"table": {"cpu' : 1, 'x": 1}}},
        {"operator": {"settings": {"WATTS_RESOURCE": True}}},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(helm: Helm, values: Manifest) -> None:
    with pytest.raises(Refused, match=r"wattsResource|cpu"):
        helm.render(values)
