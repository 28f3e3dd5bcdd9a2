"""What a fault in the admission policy itself can do, and to whom."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import pytest

from tests.extender.scheduler.admission import admitted, pod, policy_installed, policy_objects

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane


def test_an_error_in_the_policy_stops_no_pod_that_did_not_ask(fresh_cluster: ControlPlane) -> None:
    from testbed.api import ApiError

    policy, binding = deepcopy(policy_objects())
    policy["spec"]["mutations"][0]["jsonPatch"]["expression"] = "[JSONPatch{op: 'remove', path: '/spec/nothing'}]"
    with policy_installed(fresh_cluster, [policy, binding]):
        for workload_class in (None, "standard", "Performance"):
            admitted(fresh_cluster, pod(workload_class=workload_class))
        with pytest.raises(ApiError, match="policy 'joulie-performance-affinity'"):
            admitted(fresh_cluster, pod())
