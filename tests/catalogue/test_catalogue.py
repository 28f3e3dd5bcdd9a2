"""The hardware catalogue: its facts, names from the field, models from a file."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from joulie.catalogue.builtin import CPUS, GPUS
from joulie.catalogue.lookup import Catalogue, extend
from joulie.errors import InputError
from joulie.physics.power import curve_power_w, modelled_power_w

CATALOGUE = Catalogue()

# name: cores, base GHz, boost GHz, TDP, lowest and highest cTDP, curve
CPU_FACTS: dict[str, tuple[float, float, float, float, float | None, float | None, str]] = {
    "EPYC 9654": (96, 2.4, 3.7, 360, 320, 400, "128 257 300 340 378 410 442 498 577 697 817"),
    "EPYC 9534": (64, 2.45, 3.7, 280, 240, 300, ""),
    "EPYC 9655": (96, 2.6, 4.5, 400, 320, 400, "138 297 367 438 515 593 661 710 771 812 861"),
    "EPYC 9965": (192, 2.25, 3.7, 500, 450, 500, "157 265 314 362 412 461 503 544 587 661 800"),
    "EPYC 9375F": (32, 3.8, 4.8, 320, 320, 400, ""),
    "Xeon Gold 6530": (32, 2.1, 4.0, 270, None, None, ""),
}
GPU_FACTS = {
    "H100 NVL": (400, 200),
    "H100 SXM": (700, 200),
    "A100 SXM": (400, 100),
    "A100 PCIe": (300, 100),
    "A100 PCIe 40GB": (250, 100),
    "L40S": (350, 100),
    "MI300X": (750, 350),
    "Radeon PRO W7900": (295, 200),
}


@pytest.mark.parametrize("name", CPU_FACTS)
def test_cpu_facts(name: str) -> None:
    cpu = CATALOGUE.cpu(name)
    assert cpu is not None
    cores, base, boost, tdp, low, high, curve = CPU_FACTS[name]
    assert (cpu.name, cpu.cores, cpu.base_ghz, cpu.boost_ghz, cpu.tdp_w) == (name, cores, base, boost, tdp)
    assert (cpu.ctdp_min_w, cpu.ctdp_max_w) == (low, high)
    assert cpu.max_w == (high or tdp)
    assert cpu.node_curve_w == (tuple(float(point) for point in curve.split()) or None)
    assert cpu.node_idle_w == (float(curve.split()[0]) if curve else None)


@pytest.mark.parametrize("name", GPU_FACTS)
def test_gpu_facts(name: str) -> None:
    gpu = CATALOGUE.gpu(name)
    assert gpu is not None
    assert (gpu.name, gpu.max_w, gpu.min_w) == (name, *GPU_FACTS[name])


@pytest.mark.parametrize("entry", [*CPUS, *GPUS], ids=lambda entry: entry.name)
def test_every_entry_says_where_its_numbers_come_from(entry: Any) -> None:
    assert entry.evidence in ("measured", "official", "proxy")
    assert len(entry.source) > 10


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("AMD EPYC 9654 96-Core Processor", "EPYC 9654"),
        ("epyc-9654", "EPYC 9654"),
        ("EPYC9654", "EPYC 9654"),
        ("AMD EPYC 9375F 32-Core Processor", "EPYC 9375F"),
        ("INTEL(R) XEON(R) GOLD 6530", "Xeon Gold 6530"),
        ("Intel(R) Xeon(R) Gold 6530 CPU @ 2.10GHz", "Xeon Gold 6530"),
        ("EPYC 9654P", None),
        ("AMD EPYC 9375 32-Core Processor", None),
        ("EPYC", None),
        ("Xeon Gold 6530N", None),
        ("", None),
        (None, None),
    ],
)
def test_cpu_names_from_the_field(spelling: str | None, name: str | None) -> None:
    found = CATALOGUE.cpu(spelling)
    assert (found.name if found else None) == name


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("NVIDIA-H100-80GB-HBM3", "H100 SXM"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("H100 SXM5", "H100 SXM"),
        ("NVIDIA-H100-NVL", "H100 NVL"),
        ("NVIDIA-L40S", "L40S"),
        ("AMD_Instinct_MI300X_OAM", "MI300X"),
        ("AMD Radeon PRO W7900", "Radeon PRO W7900"),
        ("NVIDIA H100 PCIe", None),
        ("H100", None),
        ("NVIDIA L40", None),
        ("AMD Instinct MI300A", None),
    ],
)
def test_gpu_names_from_the_field(spelling: str, name: str | None) -> None:
    found = CATALOGUE.gpu(spelling)
    assert (found.name if found else None) == name


CURVE = CATALOGUE.cpus[0].node_curve_w or ()


@pytest.mark.parametrize(
    ("load", "watts"), [(0, 128), (0.1, 257), (0.05, 192.5), (0.55, 426), (1, 817), (-1, 128), (2, 817)]
)
def test_a_curve_passes_through_its_points(load: float, watts: float) -> None:
    assert curve_power_w(CURVE, load) == pytest.approx(watts)


@pytest.mark.parametrize("cpu", [cpu for cpu in CPUS if cpu.node_curve_w], ids=lambda cpu: cpu.name)
def test_a_curve_rises_everywhere(cpu: Any) -> None:
    watts = [curve_power_w(cpu.node_curve_w, load) for load in np.linspace(0, 1, 1001).tolist()]
    assert all(earlier < later for earlier, later in pairwise(watts))


def test_without_a_curve_power_follows_load_and_frequency() -> None:
    assert modelled_power_w(100, 500, 0) == 100
    assert modelled_power_w(100, 500, 1) == 500
    assert modelled_power_w(100, 500, 0.5) == pytest.approx(100 + 400 * 0.5**1.15)
    assert modelled_power_w(100, 500, 0.5, 0.8) == pytest.approx(100 + 400 * 0.5**1.15 * 0.8**1.35)


def cpu_entry(**changes: Any) -> dict[str, Any]:
    entry = {
        "name": "Own 1",
        "cores": 8,
        "base_ghz": 2,
        "boost_ghz": 3,
        "tdp_w": 65,
        "evidence": "proxy",
        "source": "x",
    }
    return {"cpu": [{**entry, **changes}]}


def gpu_entry(**changes: Any) -> dict[str, Any]:
    return {"gpu": [{"name": "Own G", "vendor": "other", "max_w": 300, "evidence": "proxy", "source": "x", **changes}]}


def test_models_of_a_file_come_before_the_builtin_ones() -> None:
    own = extend(CATALOGUE, cpu_entry(name="EPYC 9654", tdp_w=111) | gpu_entry(aliases=["Board 7"]), "own.toml")
    cpu, gpu, builtin = own.cpu("AMD EPYC 9654"), own.gpu("other-board-7"), own.cpu("EPYC 9965")
    assert cpu is not None
    assert cpu.max_w == 111
    assert gpu is not None
    assert gpu.name == "Own G"
    assert builtin is not None
    assert CATALOGUE.gpu("other-board-7") is None


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        pytest.param({"disk": []}, "unknown field `disk`", id="an unknown table"),
        pytest.param(cpu_entry(tdp=1), "unknown field `tdp`", id="an unknown field"),
        pytest.param({"cpu": [{"name": "x"}]}, "missing required field `cores`", id="a missing field"),
        pytest.param(cpu_entry(cores="8"), "Expected `float`, got `str`", id="a text for a number"),
        pytest.param(cpu_entry(tdp_w=0), "> 0.0", id="zero"),
        pytest.param(cpu_entry(tdp_w=float("nan")), "> 0.0", id="not a number"),
        pytest.param(cpu_entry(tdp_w=float("inf")), "<= 100000.0", id="infinite"),
        pytest.param(cpu_entry(evidence="rumour"), "'rumour'", id="unknown evidence"),
        pytest.param(cpu_entry(ctdp_min_w=70), "lowest cap 70 W is above the highest 65 W", id="minimum above maximum"),
        pytest.param(gpu_entry(min_w=301), "lowest cap 301 W is above the highest 300 W", id="of a GPU"),
        pytest.param(cpu_entry(name="--"), "name '--' has no letter or digit", id="a name that matches everything"),
        pytest.param(
            cpu_entry(aliases=["ok", ""]), "name '' has no letter or digit", id="an alias that matches everything"
        ),
        pytest.param(cpu_entry(node_curve_w=[1, 2, 3]), "length >= 11", id="a short curve"),
        pytest.param(cpu_entry(node_curve_w=[*range(10, 0, -1), 20]), "must rise", id="a falling curve"),
        pytest.param(cpu_entry(node_curve_w=list(range(11))), "must rise", id="a curve from zero"),
        pytest.param(cpu_entry(node_curve_w=[float("nan")] * 11), "must rise", id="a curve of nothing"),
        pytest.param(cpu_entry(node_curve_w=[*range(1, 11), float("inf")]), "must rise", id="an infinite curve"),
        pytest.param({"cpu": cpu_entry()["cpu"] * 2}, "Own 1 appears twice", id="a model twice"),
    ],
)
def test_a_faulty_file_is_refused_in_one_line_that_names_it(content: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError) as raised:
        extend(CATALOGUE, content, "own.toml")
    message = str(raised.value)
    assert message.startswith("own.toml: ")
    assert complaint in message
    assert "\n" not in message
