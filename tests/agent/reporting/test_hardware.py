"""NodeHardware from what was found: nothing invented, nothing 0, and how sure it is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.agent.reporting.hardware import hardware_of, limits_of
from joulie.agent.routing.wiring import HostDevices
from joulie.catalogue.lookup import Catalogue
from joulie.cluster.decoding import decoders
from joulie.devices.interface import Discovered
from joulie.devices.topology import Topology
from joulie.model.api import NodeHardwareStatus
from joulie.model.api.hardware import CpuHardware, GpuCapRange, GpuHardware, SocketCapRange
from joulie.model.snapshot import Node
from joulie.settings import AgentSettings, HardwareSettings, load
from tests.devices.sysfs_trees import MACHINES, build

CATALOGUE, SETTINGS = Catalogue(), HardwareSettings()
BARE = Node("a", {})
XEON = Topology("Intel(R) Xeon(R) Gold 6530", "GenuineIntel", 2, 64, 32, 128, "intel_pstate", 1 << 38)
RAPL = Discovered("cpu", "rapl", True, 2, max_w=270)
DVFS = Discovered("cpu", "dvfs", True, 128, no_telemetry="no power")
H100 = Discovered("gpu", "nvidia", True, 4, "NVIDIA H100 80GB HBM3", "nvidia", 200, 700, 700, 700)
NO_AMD = Discovered("gpu", "amd", False, no_control="no AMD board", no_telemetry="no AMD board", quality="unavailable")


def _hardware(*found: Discovered, topology: Topology | None = XEON, node: Node = BARE) -> NodeHardwareStatus:
    return hardware_of(node, found, topology, None, SETTINGS, CATALOGUE)


def test_a_machine_that_says_everything_is_exact() -> None:
    status = _hardware(RAPL, DVFS, H100, NO_AMD)
    assert status.cpu == CpuHardware(
        raw_model=XEON.raw_model,
        model="Xeon Gold 6530",
        vendor="GenuineIntel",
        sockets=2,
        total_cores=64,
        cores_per_socket=32,
        driver_family="intel_pstate",
        cap_range=SocketCapRange(None, 270),
        control_available=True,
        telemetry_available=True,
        quality="exact",
    )
    assert status.gpu is not None
    assert (status.gpu.model, status.gpu.count) == ("H100 SXM", 4)
    assert status.gpu.cap_range_per_gpu == GpuCapRange(200, 700, 700)
    assert status.quality is not None
    assert status.quality.overall == "exact"
    assert status.capabilities is not None
    assert status.capabilities.gpu_control is True
    assert status.memory is not None
    assert status.memory.total_bytes == 1 << 38


def test_overall_is_the_worst_of_the_parts_that_are_there() -> None:
    guessed = msgspec.structs.replace(H100, quality="heuristic", warnings=("mixed models",))
    status = _hardware(RAPL, guessed)
    assert status.quality is not None
    assert (status.quality.overall, status.quality.warnings) == ("heuristic", ["mixed models"])
    without_gpu = _hardware(RAPL, NO_AMD)
    assert without_gpu.gpu == GpuHardware(present=False)
    assert without_gpu.quality is not None
    assert without_gpu.quality.overall == "exact"


def test_frequency_alone_is_heuristic_and_states_no_watts() -> None:
    blocked = Discovered(
        "cpu", "rapl", False, no_control="no powercap zone", no_telemetry="none", quality="unavailable"
    )
    status = _hardware(blocked, DVFS)
    assert status.cpu is not None
    assert (status.cpu.quality, status.cpu.cap_range, status.cpu.control_available) == ("heuristic", None, True)


def test_without_any_way_to_control_the_reasons_are_told() -> None:
    reasons = ("not allowed", "no cpufreq")
    found = [
        Discovered("cpu", name, False, no_control=why, no_telemetry=why, quality="unavailable")
        for name, why in zip(("rapl", "dvfs"), reasons, strict=True)
    ]
    status = _hardware(*found, topology=Topology())
    assert status.cpu is not None
    assert (status.cpu.quality, status.cpu.control_available) == ("unavailable", False)
    assert status.cpu.warnings == ["rapl: not allowed", "dvfs: no cpufreq"]


def test_gpus_that_the_node_promises_and_no_backend_sees_are_reported() -> None:
    node = Node("a", {"joulie.io/hw.gpu-model": "NVIDIA-L40S", "joulie.io/hw.gpu-count": "2"})
    gpu = _hardware(RAPL, NO_AMD, node=node).gpu
    assert gpu is not None
    assert (gpu.present, gpu.count, gpu.model, gpu.control_available, gpu.quality) == (
        True,
        2,
        "L40S",
        False,
        "heuristic",
    )
    assert gpu.warnings is not None
    assert "no AMD board" in gpu.warnings[1]


def test_what_an_endpoint_says_of_its_hardware_is_taken_at_its_word() -> None:
    told = NodeHardwareStatus(cpu=CpuHardware(model="EPYC 9654", sockets=2, quality="exact", control_available=True))
    status = hardware_of(BARE, [RAPL], None, told, SETTINGS, CATALOGUE)
    assert status.cpu == told.cpu
    assert status.quality is not None
    assert status.quality.overall == "exact"
    assert status.capabilities is not None
    assert status.capabilities.cpu_control is True


def test_without_such_words_labels_and_catalogue_speak() -> None:
    labels = {"joulie.io/hw.cpu-model": "AMD-EPYC-9654", "joulie.io/hw.cpu-sockets": "2"}
    node = Node("a", labels, capacity_cores=192)
    over_http = Discovered("cpu", "http", True, quality="heuristic")
    status = _hardware(over_http, topology=None, node=node)
    assert status.cpu is not None
    assert (status.cpu.model, status.cpu.sockets, status.cpu.total_cores) == ("EPYC 9654", 2, 192)
    assert (status.cpu.quality, status.cpu.cap_range) == ("heuristic", None)
    limits = limits_of(node, status, SETTINGS, CATALOGUE)
    assert (limits.cpu_max_w, limits.gpu_max_w_each) == (800, None)


def test_limits_are_those_of_the_operator() -> None:
    limits = limits_of(BARE, _hardware(RAPL, H100), SETTINGS, CATALOGUE)
    assert (limits.cpu_max_w, limits.gpu_max_w_each, limits.gpu_default_w_each) == (540, 700, 700)
    unknown = _hardware(DVFS, topology=Topology("A CPU of tomorrow"))
    assert limits_of(BARE, unknown, SETTINGS, CATALOGUE).cpu_max_w is None


_WATTS = st.none() | st.floats(-10, 2000, allow_nan=False)
_FOUND = st.builds(
    Discovered,
    kind=st.sampled_from(["cpu", "gpu"]),
    backend=st.sampled_from(["rapl", "dvfs", "hsmp", "nvidia", "amd", "http"]),
    present=st.booleans(),
    count=st.integers(0, 256),
    raw_model=st.none() | st.text(max_size=20),
    min_w=_WATTS,
    max_w=_WATTS,
    default_w=_WATTS,
    current_w=_WATTS,
    no_control=st.none() | st.text(max_size=10),
    quality=st.sampled_from(["exact", "heuristic", "unavailable"]),
    warnings=st.lists(st.text(max_size=5), max_size=2).map(tuple),
)


@given(st.lists(_FOUND, max_size=5), st.booleans())
def test_whatever_is_found_nothing_unknown_is_written_as_zero_and_the_api_takes_it(
    found: list[Discovered], with_topology: bool
) -> None:
    status = _hardware(*found, topology=XEON if with_topology else None)
    body = {"metadata": {"name": "a"}, "status": msgspec.to_builtins(status)}
    assert decoders.decode_hardware(msgspec.json.encode(body)).status == status
    assert not [path for path, value in _leaves(body["status"]) if value == 0 and value is not False], body
    limits = limits_of(BARE, status, SETTINGS, CATALOGUE)
    assert all(value is None or value > 0 for value in (limits.cpu_max_w, limits.gpu_max_w_each))


def _leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in _leaves(inner, f"{path}.{key}")]
    return [(path, value)]


@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_every_machine_gets_hardware_that_the_api_takes(machine: str, tmp_path: Path) -> None:
    tree = build(machine, tmp_path)
    settings = load(AgentSettings, {"HOST_SYS_PATH": str(tree.sys)})
    host = HostDevices(settings, CATALOGUE, str(tree.proc))

    async def look() -> NodeHardwareStatus:
        found = [await capper.discover() for capper in host.cappers({}) if capper.kind == "cpu"]
        return hardware_of(BARE, found, host.topology(), None, SETTINGS, CATALOGUE)

    status = asyncio.run(look())
    body = msgspec.json.encode({"metadata": {"name": "a"}, "status": msgspec.to_builtins(status)})
    assert decoders.decode_hardware(body).status == status
    assert status.cpu is not None
    if not status.cpu.control_available:
        assert status.cpu.warnings


def test_an_endpoint_that_describes_the_cpus_does_not_speak_for_gpus_that_are_elsewhere() -> None:
    told = NodeHardwareStatus(cpu=CpuHardware(model="EPYC 9654", sockets=2, quality="exact"))
    for said in (told, msgspec.structs.replace(told, gpu=GpuHardware(present=False))):
        alone = hardware_of(BARE, [H100], None, said, SETTINGS, CATALOGUE)
        assert alone.gpu == said.gpu
        both = hardware_of(BARE, [H100], None, said, SETTINGS, CATALOGUE, gpus_elsewhere=True)
        assert both.cpu == told.cpu
        assert both.gpu is not None
        assert (both.gpu.present, both.gpu.count, both.gpu.model) == (True, 4, "H100 SXM")
        assert both.capabilities is not None
        assert both.capabilities.gpu_control is True
