"""The lower of what a profile wants and what an order allows; what is held is what was read back in watts."""

from __future__ import annotations

import pytest

from joulie.agent.budget.limiting import UNLIMITED, held_caps, limited
from joulie.agent.outcome import CapLimits, CapOutcome, Enforced
from joulie.control.budget.counting import Pair
from tests.agent.held_nodes import target

LIMITS = CapLimits(cpu_max_w=400.0, cpu_packages=2.0, gpu_max_w_each=700.0)


@pytest.mark.parametrize(
    ("wanted", "cpu_w", "gpu_w"),
    [
        (None, 120.0, 300.0),
        (target(cpu_pct=100, gpu_pct=100), 120.0, 300.0),
        (target(cpu_pct=50, gpu_pct=40), 100.0, 280.0),
        (target(cpu_w=90, gpu_w=200), 90.0, 200.0),
        (target(cpu_w=150, cpu_pct=10, gpu_w=500, gpu_pct=10), 120.0, 300.0),  # watts win over percent
    ],
)
def test_the_lower_one_counts_for_each_kind_of_device(wanted: object, cpu_w: float, gpu_w: float) -> None:
    got = limited(wanted, Pair(120.0, 300.0), LIMITS, has_gpus=True)  # type: ignore[arg-type]
    assert (got.cpu_w_each, got.gpu_w_each, got.under_budget) == (cpu_w, gpu_w, True)
    assert got.cpu_pct == cpu_w / 200.0 * 100  # frequency, where it must stand in, aims at the same


def test_an_order_without_gpu_watts_leaves_gpus_to_the_profile() -> None:
    got = limited(target(cpu_pct=100, gpu_pct=60), Pair(120.0), LIMITS, has_gpus=True)
    assert (got.gpu_w_each, got.gpu_pct) == (None, 60)


def test_percent_of_an_unknown_maximum_is_held_by_the_order_alone() -> None:
    got = limited(target(cpu_pct=50), Pair(120.0), CapLimits(), has_gpus=False)
    assert (got.cpu_w_each, got.cpu_pct) == (120.0, 50)


def test_an_order_that_is_not_known_is_no_cap_of_its_own() -> None:
    assert limited(target(cpu_w=90), UNLIMITED, LIMITS, has_gpus=False).cpu_w_each == 90


def applied(held_w: float | None, cap_w: float | None = None, throttle_pct: float | None = None) -> CapOutcome:
    return CapOutcome("applied", "rapl", "", cap_w, held_w, throttle_pct)


NONE = CapOutcome("none")


@pytest.mark.parametrize(
    ("cpu", "gpu", "has_gpus", "held"),
    [
        (applied(240.0), NONE, False, Pair(120, 0)),
        (applied(239.75), NONE, False, Pair(120, 0)),  # hardware rounds to eighths
        (applied(240.25), NONE, False, Pair(121, 0)),  # never less than is held
        (applied(240.0), applied(300.0), True, Pair(120, 300)),
        (applied(240.0), NONE, True, None),  # boards that nothing holds may draw anything
        (applied(240.0), CapOutcome("blocked"), True, None),
        (applied(None, 400.0), NONE, False, Pair(200, 0)),  # no limit is needed at the maximum
        (applied(None, 240.0), NONE, False, None),
        (applied(240.0, 240.0, throttle_pct=40.0), NONE, False, None),  # frequency holds no watts
        (CapOutcome("error", held_w=240.0), NONE, False, None),
        (CapOutcome("blocked"), NONE, False, None),
    ],
)
def test_only_limits_in_watts_that_were_read_back_are_held(
    cpu: CapOutcome, gpu: CapOutcome, has_gpus: bool, held: Pair | None
) -> None:
    assert held_caps(Enforced(cpu, gpu), LIMITS, has_gpus=has_gpus) == held
