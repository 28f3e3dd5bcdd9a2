"""New pods get their watts from the table, in namespaces that opted in and nowhere else. Real API server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.extender.watts.policies import (
    OTHERS,
    OWN,
    WATTS,
    Body,
    admitted,
    container,
    pod,
    policies_installed,
    watts_of,
)

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    with policies_installed(control_plane):
        yield control_plane


def owner(kind: str, *, controller: bool = True) -> Body:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": "of", "uid": "1", "controller": controller}
    return {"ownerReferences": [reference]}


def annotated(watts: str) -> Body:
    return {"annotations": {WATTS: watts}}


@pytest.mark.parametrize(
    ("tried", "watts"),
    [
        (pod(container("4")), [40]),
        (pod(container("2500m")), [25]),
        (pod(container("2501m")), [26]),
        (pod(container("8", "2")), [1080]),
        (pod(container("4"), container("1", name="other")), [40, 10]),
        (pod(container("4"), container(name="other")), [40, 0]),
        (pod(container()), [20]),
        (pod(container("100m")), [20]),
        (pod(container("100m"), container("100m", name="other")), [19, 1]),
        (pod(container("1", watts="300")), [300]),
        (pod(container("100", watts="300")), [1000]),
        (pod(container("4"), meta=annotated("100")), [100]),
        (pod(container("4"), container("4", name="other"), meta=annotated("100")), [60, 40]),
        (pod(container("4"), meta=annotated("39")), [40]),
        (pod(container("4"), meta=annotated("0")), [40]),
        (pod(container("4"), meta=owner("ReplicaSet")), [40]),
        (pod(container("4"), meta=owner("DaemonSet", controller=False)), [40]),
        (pod(container("4"), nodeName="somewhere"), [40]),
    ],
    ids=str,
)
def test_a_pod_asks_for_what_its_cores_and_gpus_may_draw(plane: ControlPlane, tried: Body, watts: list[int]) -> None:
    assert watts_of(admitted(plane, tried)) == watts


def test_init_containers_ask_too_so_that_the_larger_moment_counts(plane: ControlPlane) -> None:
    stored = admitted(plane, pod(container("1"), initContainers=[container("16", name="before")]))
    assert (watts_of(stored), watts_of(stored, "initContainers")) == ([20], [160])


@pytest.mark.parametrize("where", [OTHERS, OWN, "kube-system", "default"])
def test_other_namespaces_are_left_alone(plane: ControlPlane, where: str) -> None:
    assert watts_of(admitted(plane, pod(container("4"), meta=annotated("many")), where)) == [0]


@pytest.mark.parametrize(
    "meta",
    [owner("DaemonSet"), {"annotations": {"kubernetes.io/config.mirror": "x"}, **owner("Node")}],
    ids=["daemonset", "mirror"],
)
def test_daemonsets_and_mirror_pods_are_left_alone(plane: ControlPlane, meta: Body) -> None:
    assert watts_of(admitted(plane, pod(container("4"), meta=meta, nodeName="somewhere"))) == [0]


@pytest.mark.parametrize("said", ["many", "-5", "1.5", "1k", ""])
def test_an_annotation_that_is_no_number_is_refused(plane: ControlPlane, said: str) -> None:
    from testbed.api import ApiError

    with pytest.raises(ApiError, match="whole number of watts"):
        admitted(plane, pod(container("4"), meta=annotated(said)))
