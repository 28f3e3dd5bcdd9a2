"""Caps that hardware cannot hold: what was asked for, and what the nodes were held at instead."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from joulie.catalogue.lookup import Catalogue
from joulie.control.caps import profile_caps
from joulie.lab.model.setup import LAB_POLICIES, RunSetup
from joulie.lab.simulation.cluster import lab_cluster
from joulie.lab.simulation.steering import lab_settings
from joulie.model.names import ECO, PERFORMANCE
from joulie.physics.hardware import Machine as Recognised
from joulie.plant.machines import PlantMachine
from joulie.settings import PlanSettings

ROUNDING = 1e-6


def not_held(setup: RunSetup, catalogue: Catalogue, *, was_eco: bool = True) -> list[str]:
    """`its GPU cap of 10 % was held at 50 %, the least of H100 SXM`, a line each."""
    plan = lab_settings(setup).operator.decision.plan
    cluster = setup.cluster
    one_each = lab_cluster(
        structs.replace(cluster, nodes=[structs.replace(group, count=1) for group in cluster.nodes]), catalogue
    )
    lines = [
        f"its {name}{device} cap of {asked:g} {unit} was held at {held:.4g} {unit}, the least of {model}"
        for profile, name in _profiles(setup)
        if was_eco or profile != ECO
        for machine, known in zip(one_each.machines, one_each.recognised, strict=True)
        for device, model, asked, held, unit in _caps(machine, known, profile, plan)
        if held > asked + ROUNDING
    ]
    return list(dict.fromkeys(lines))


def _profiles(setup: RunSetup) -> tuple[tuple[str, str], ...]:
    """With what a cap of it is called; policies of the lab know one alone."""
    return ((PERFORMANCE, ""),) if setup.policy.name in LAB_POLICIES else ((PERFORMANCE, "performance "), (ECO, "eco "))


def _caps(
    machine: PlantMachine, known: Recognised, profile: str, plan: PlanSettings
) -> Iterator[tuple[str, str, float, float, str]]:
    """Device, model, what was asked for, what is held, and their unit."""
    eco, caps = profile == ECO, profile_caps(known, profile, plan)
    model = machine.cpu.name or "its CPU"
    if caps.cpu_w_each is not None:
        asked_w = plan.eco_cap_w if eco else plan.performance_cap_w
        yield "CPU", model, asked_w, caps.cpu_w_each, "W a package"
    else:
        asked_pct = plan.cpu_eco_cap_pct if eco else plan.cpu_performance_cap_pct
        yield "CPU", model, asked_pct, caps.effective_cpu_pct(known), "%"
    if machine.gpu is not None:
        asked_pct = plan.gpu_eco_cap_pct if eco else plan.gpu_performance_cap_pct
        yield "GPU", machine.gpu.name or "its boards", asked_pct, caps.effective_gpu_pct(known), "%"
