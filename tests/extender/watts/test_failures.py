"""A policy that cannot say what a pod draws refuses it: letting it in would break the promise silently."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.extender.watts.policies import OTHERS, admitted, container, manifests, pod, policies_installed

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane


def test_watts_that_cannot_be_computed_refuse_pods_of_namespaces_that_opted_in(fresh_cluster: ControlPlane) -> None:
    from testbed.api import ApiError

    with policies_installed(fresh_cluster, manifests("{'cpu': 1.0e30}"), refusing=True):
        with pytest.raises(ApiError, match="joulie-watts"):
            admitted(fresh_cluster, pod(container("4")))
        admitted(fresh_cluster, pod(container("4")), OTHERS)


def test_a_table_that_is_no_table_is_refused_itself(fresh_cluster: ControlPlane) -> None:
    from testbed.api import ApiError

    for table in ("{'cpu': double('much')}", "{'cpu': 'much'}"):
        with pytest.raises(ApiError, match="joulie-watts"):
            fresh_cluster.apply(manifests(table)[:1])
