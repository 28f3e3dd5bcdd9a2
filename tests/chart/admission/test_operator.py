"""What the admission policies leave to operator and clean-up: of nodes a few fields; a twin's spec is the operator's.

The accounts are cluster administrators besides, so that it is the policy which refuses, whatever the verb. Requests are
dry runs: the scene stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.chart.admission.accounts import APPLY, FOREIGN, JOULIE, ORDER, UNCAPPED, Try, kind, trying
from tests.chart.charts import SIMULATED, Helm, Manifest, find, named
from tests.support.rights import NAMESPACE

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

TWIN = f"{JOULIE}/nodetwins/mine"
ONLY_THE_OPERATOR = "only the operator writes the spec of a twin"
RELEASE = {"order": 4, "released": True, "reason": "Joulie is being removed"}


@pytest.mark.parametrize("account", ["joulie-operator", "joulie-cleanup"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"metadata": {"labels": {"joulie.io/power-profile": "performance", "joulie.io/draining": None}}}, ""),
        ({"metadata": {"labels": {"joulie.io/managed": None}}}, "writes the labels"),
        ({"metadata": {"labels": {"joulie.io/reserved": "true"}}}, "writes the labels"),
        ({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}, "writes the labels"),
        (
            {"metadata": {"annotations": {"joulie.io/power-profile": "eco"}}},
            "nothing but two labels and its own taints",
        ),
        ({"metadata": {"finalizers": ["joulie.io/x"]}}, "nothing but two labels and its own taints"),
        ({"spec": {"unschedulable": True}}, "nothing but two labels and its own taints"),
        (
            {"spec": {"podCIDR": "10.9.0.0/24", "podCIDRs": ["10.9.0.0/24"]}},
            "nothing but two labels and its own taints",
        ),
        ({"spec": {"providerID": "example://x"}}, "nothing but two labels and its own taints"),
        ({"spec": {"taints": [FOREIGN]}}, ""),
        ({"spec": {"taints": [FOREIGN, {**UNCAPPED, "key": "joulie.io/asleep"}]}}, ""),
        ({"spec": {"taints": [UNCAPPED, FOREIGN]}}, ""),
        ({"spec": {"taints": [UNCAPPED]}}, "those of joulie.io/ alone"),
        ({"spec": {"taints": None}}, "those of joulie.io/ alone"),
        ({"spec": {"taints": [{**FOREIGN, "value": "no"}, UNCAPPED]}}, "those of joulie.io/ alone"),
        ({"spec": {"taints": [FOREIGN, {"key": "joulie.io.evil/x", "effect": "NoSchedule"}]}}, "joulie.io/ alone"),
        ({"spec": {"taints": [FOREIGN, {**UNCAPPED, "effect": "NoExecute"}]}}, "none that ends pods"),
        ({"spec": {"taints": [FOREIGN], "unschedulable": True}}, "nothing but two labels and its own taints"),
    ],
    ids=str,
)
def test_of_a_node_the_operator_writes_two_labels_and_its_own_taints(
    scene: ControlPlane, account: str, change: Manifest, said: str
) -> None:
    refusal = trying(scene, scene.service_account_token(NAMESPACE, account))("PATCH", "/api/v1/nodes/mine", change)
    assert said in refusal
    assert bool(refusal) == bool(said)


def _resources(**watts: Any) -> Manifest:
    """A patch of both sides; keys are written with underscores."""
    names = {"watts": "joulie.io/watts", "cpu": "cpu", "gpu": "nvidia.com/gpu"}
    asked = {names[key]: value for key, value in watts.items()}
    return {"status": {"capacity": asked, "allocatable": asked}}


@pytest.mark.parametrize("account", ["joulie-operator", "joulie-cleanup"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_resources(watts="800"), ""),
        (_resources(watts=None), ""),
        (_resources(cpu="1"), "joulie.io/watts alone"),
        (_resources(watts="800", gpu="8"), "joulie.io/watts alone"),
        (_resources(cpu=None), "joulie.io/watts alone"),
        ({"status": {"conditions": None}}, "joulie.io/watts alone"),
        ({"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]}}, "joulie.io/watts alone"),
        ({"status": {"nodeInfo": {"bootID": "another"}}}, "joulie.io/watts alone"),
        ({"metadata": {"labels": {"joulie.io/power-profile": "performance"}}}, "joulie.io/watts alone"),
    ],
    ids=str,
)
def test_of_a_nodes_status_the_operator_writes_watts(
    scene: ControlPlane, account: str, change: Manifest, said: str
) -> None:
    attempt = trying(scene, scene.service_account_token(NAMESPACE, account))
    refusal = attempt("PATCH", "/api/v1/nodes/mine/status", change)
    assert said in refusal
    assert bool(refusal) == bool(said)


def test_a_node_as_large_as_nodes_get_can_still_be_written(scene: ControlPlane) -> None:
    """A policy that costs too much to evaluate refuses: kubelet reports 50 images, and people like annotations."""
    images = [
        {"names": [f"{'r' * 200}/{number}-{alias}" for alias in range(5)], "sizeBytes": 1} for number in range(50)
    ]
    resources = {f"example.com/device-{number}": "1" for number in range(200)}
    scene.api.patch(
        "/api/v1/nodes/other",
        {
            "metadata": {
                "labels": {f"example.com/label-{number}": "x" * 63 for number in range(300)},
                "annotations": {f"example.com/note-{number}": "x" * 400 for number in range(300)},
            },
            "spec": {"taints": [{"key": f"example.com/{number}", "effect": "NoSchedule"} for number in range(100)]},
        },
    )
    scene.api.patch("/api/v1/nodes/other/status", {"status": {"images": images, "capacity": resources}})
    attempt = trying(scene, scene.service_account_token(NAMESPACE, "joulie-operator"))
    labels = {"joulie.io/power-profile": "performance"}
    assert attempt("PATCH", "/api/v1/nodes/other", {"metadata": {"labels": labels}}) == ""
    assert attempt("PATCH", "/api/v1/nodes/other/status", _resources(watts="800")) == ""
    assert "nothing but" in attempt("PATCH", "/api/v1/nodes/other", {"spec": {"unschedulable": True}})


@pytest.fixture(scope="module")
def operator(scene: ControlPlane) -> Try:
    return trying(scene, scene.service_account_token(NAMESPACE, "joulie-operator"))


@pytest.fixture(scope="module")
def others(scene: ControlPlane) -> Iterator[dict[str, Try]]:
    """Accounts whose roles allow it, and that are not the operator's."""
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "joulie-operator", "namespace": "default"},
    }
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"kind": "ServiceAccount", "name": "joulie-operator", "namespace": "default"}
    binding = {"apiVersion": f"{role['apiGroup']}/v1", "kind": "ClusterRoleBinding", "roleRef": role}
    scene.apply([account, {**binding, "metadata": {"name": "joulie-namesake"}, "subjects": [subject]}])
    yield {
        "cleanup": trying(scene, scene.service_account_token(NAMESPACE, "joulie-cleanup")),
        "administrator": trying(scene, scene.admin_token),
        "account of the same name elsewhere": trying(scene, scene.service_account_token("default", "joulie-operator")),
    }
    # Other tests of this API server look for what an uninstall leaves.
    scene.api.delete("/api/v1/namespaces/default/serviceaccounts/joulie-operator")
    scene.api.delete(f"/apis/{role['apiGroup']}/v1/clusterrolebindings/joulie-namesake")


def test_the_operator_writes_all_of_a_twin(operator: Try) -> None:
    for method, path, body, content in (
        ("POST", f"{JOULIE}/nodetwins", kind("NodeTwin", "third", spec={"nodeName": "third", "profile": "eco"}), ""),
        ("PATCH", TWIN, {"spec": {"profile": "performance", "budget": None}}, ""),
        ("PATCH", TWIN, {"spec": {"budget": {**ORDER, "order": 4}, "failsafe": {"cpuWattsPerPackage": 90}}}, ""),
        ("PATCH", TWIN, kind("NodeTwin", "mine", spec={"profile": "performance"}), APPLY),
        ("PATCH", f"{TWIN}/status", {"status": {"schedulableClass": "performance"}}, ""),
        ("DELETE", TWIN, None, ""),
    ):
        assert operator(method, path, body, content) == "", (method, path, body)


@pytest.mark.parametrize(
    "spec",
    [
        {"profile": "performance"},
        {"profile": None},
        {"cpu": {"packagePowerCapPctOfMax": 40}},
        {"failsafe": {"cpuWattsPerPackage": 500}},
        {"budget": None},
        {"budget": {"caps": {"cpuWattsPerPackage": 500}}},
        {"budget": {**RELEASE, "caps": {"cpuWattsPerPackage": 500}}},
        {"budget": {**RELEASE, "atMost": {"cpuWattsPerPackage": 500}}},
        {"budget": {**RELEASE, "groups": None}},
        {"budget": {**RELEASE, "order": 3}},
        {"budget": {**RELEASE, "order": 2}},
        {"budget": {"order": 4}},
        {"budget": {"order": 4, "released": False}},
        {"budget": RELEASE, "profile": "performance"},
        {"budget": RELEASE, "failsafe": {"cpuWattsPerPackage": 500}},
    ],
    ids=str,
)
def test_nothing_else_writes_a_twins_spec(others: dict[str, Try], spec: Manifest) -> None:
    for name, attempt in others.items():
        refusal = attempt("PATCH", TWIN, {"spec": spec})
        assert ONLY_THE_OPERATOR in refusal, name
        assert refusal.endswith("joulie pin mine"), name
        assert ONLY_THE_OPERATOR in attempt(
            "PATCH", TWIN, kind("NodeTwin", "mine", spec={"profile": "performance"}), APPLY
        )


def test_nor_makes_or_replaces_one(scene: ControlPlane, others: dict[str, Try]) -> None:
    there = scene.api.get(TWIN)
    for attempt in others.values():
        assert ONLY_THE_OPERATOR in attempt("POST", f"{JOULIE}/nodetwins", kind("NodeTwin", "third"))
        assert ONLY_THE_OPERATOR in attempt("PUT", TWIN, {**there, "spec": {}})
        assert attempt("PUT", TWIN, there) == ""


def test_what_people_and_cleanup_need_goes_on(others: dict[str, Try]) -> None:
    for name, attempt in others.items():
        assert attempt("PATCH", TWIN, {"spec": {"budget": RELEASE}}) == "", name
        assert (
            attempt("PATCH", TWIN, {"metadata": {"annotations": {"example.com/note": "x"}, "finalizers": None}}) == ""
        )
        assert attempt("DELETE", TWIN) == "", name


def test_a_twin_without_an_order_has_none_to_release(others: dict[str, Try]) -> None:
    for attempt in others.values():
        order = {**RELEASE, "caps": {"cpuWattsPerPackage": 500}}
        assert ONLY_THE_OPERATOR in attempt("PATCH", f"{JOULIE}/nodetwins/other", {"spec": {"budget": order}})


def test_each_policy_is_there_where_what_it_bounds_is(helm: Helm) -> None:
    nodes, twins = "joulie-node-fields", "joulie-twin-spec"
    assert named(helm.render(), "ValidatingAdmissionPolicy") == {"joulie-agent-own-node", nodes, twins}
    assert named(helm.render(SIMULATED), "ValidatingAdmissionPolicy") == {"joulie-agent-pool", nodes, twins}
    elsewhere = {"operator": {"enabled": False}}  # with an account of its own, which the chart does not know
    assert named(helm.render(elsewhere), "ValidatingAdmissionPolicy") == {"joulie-agent-own-node", nodes}
    assert named(helm.render({}, "--api-versions=v1/Pod"), "ValidatingAdmissionPolicy") == set()


def test_the_accounts_are_those_of_the_releases_namespace(helm: Helm) -> None:
    manifests = helm.render(namespace="power", name="watts")
    for name in named(manifests, "ValidatingAdmissionPolicy"):
        policy = find(manifests, "ValidatingAdmissionPolicy", name)["spec"]
        said = " ".join(one["expression"] for one in policy["matchConditions"])
        assert "system:serviceaccount:power:joulie-" in said
        assert "joulie-system" not in said
        assert policy["failurePolicy"] == "Fail"
        assert find(manifests, "ValidatingAdmissionPolicyBinding", name)["spec"]["validationActions"] == ["Deny"]
