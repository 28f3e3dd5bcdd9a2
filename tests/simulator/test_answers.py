"""What a node, the whole and the building say over HTTP."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from joulie.catalogue.lookup import Catalogue
from joulie.model.api import NodeHardware
from joulie.model.api.hardware import NodeHardwareStatus
from joulie.model.kubernetes import ObjectMeta
from joulie.model.snapshot import Node
from joulie.physics.hardware import machine_of
from joulie.settings import HardwareSettings
from joulie.simulator.control import RAPL
from tests.simulator.grounds import START_S, Client, Clock, node, play, pod, simulation


def test_telemetry_has_every_field_of_the_contract() -> None:
    world = simulation()
    world.put_pod("team/a", pod("a", "gpu-1", 64, 2))
    world.step(1.0)

    async def story(client: Client) -> None:
        told = (await client.get("/telemetry/gpu-1")).body
        average_w = told["cpu"]["packagePowerWatts"] + told["gpu"]["avgPowerWattsTotal"]
        assert told["packagePowerWatts"] == pytest.approx(average_w, abs=0.01)
        assert told["cpu"]["packagePowerWatts"] > 0
        instant_w = told["cpu"]["instantPowerWatts"] + told["gpu"]["powerWattsTotal"]
        assert told["instantPackagePowerWatts"] == pytest.approx(instant_w, abs=0.01)
        cpu = {"utilization", "memoryIntensity", "ioIntensity", "freqScale", "temperatureC", "thermalThrottlePct"}
        assert cpu | {"capWatts", "throttlePct"} <= told["cpu"].keys()
        gpu = {"present", "vendor", "count", "powerWattsTotal", "avgPowerWattsTotal", "utilization", "devices"}
        assert gpu | {"capWattsPerGpuApplied", "capWattsPerGpuTarget"} <= told["gpu"].keys()
        assert (told["gpu"]["present"], told["gpu"]["vendor"], told["gpu"]["count"]) == (True, "nvidia", 4)
        devices = told["gpu"]["devices"]
        assert told["gpu"]["powerWattsTotal"] == pytest.approx(sum(d["powerWatts"] for d in devices), abs=0.01)
        assert [d["utilization"] > 0 for d in devices] == [True, True, False, False]  # two of four were asked for
        assert (await client.get("/telemetry/cpu-1")).body["gpu"] == {"present": False, "count": 0}

    play(world, story)


def test_package_power_leaves_out_the_gpus_and_node_power_adds_them() -> None:
    world = simulation()
    world.put_pod("team/a", pod("a", "gpu-1", 1, 4))
    for _ in range(10):
        world.step(1.0)

    async def story(client: Client) -> None:
        told = (await client.get("/telemetry/gpu-1")).body
        power = (await client.get("/state/gpu-1")).body["power"]
        assert told["cpu"]["packagePowerWatts"] == pytest.approx(power["cpuWatts"], rel=1e-3)
        assert told["packagePowerWatts"] == pytest.approx(power["cpuWatts"] + power["gpuWatts"], rel=1e-3)
        assert told["gpu"]["powerWattsTotal"] == pytest.approx(power["gpuWatts"])
        assert power["nodeWatts"] == pytest.approx(power["cpuWatts"] + power["gpuWatts"] + power["restWatts"], abs=0.01)

    play(world, story)


@pytest.mark.parametrize(
    "made",
    [
        node("n"),
        node("n", 8, gpu="MI300X"),
        node("n", 2, gpu="some board", cpu="some CPU"),
        node("n", 1, gpu="NVIDIA-H100-80GB-HBM3", cpu=""),
    ],
    ids=lambda n: str(sorted(n.labels.values())),
)
def test_state_tells_hardware_as_exactly_as_a_nodes_agent_would_publish_it(made) -> None:  # type: ignore[no-untyped-def]
    world = simulation(made)

    async def story(client: Client) -> None:
        told = (await client.get("/state/n")).body
        status = msgspec.convert(told["hardware"], NodeHardwareStatus)
        assert status.quality is not None
        assert status.quality.overall == "exact"
        stated = NodeHardware(metadata=ObjectMeta("n"), status=status)
        believed = machine_of(made, stated, HardwareSettings(), Catalogue())
        machine = world.nodes[0].machine
        assert believed.cpu_max_w == machine.cpu.cap_max_w == told["cpu"]["capRangeWatts"]["max"]
        assert believed.cpu_max_w == machine_of(made, None, HardwareSettings(), Catalogue()).cpu_max_w
        assert believed.cpu_min_w == machine.cpu.min_w == told["cpu"]["capRangeWatts"]["min"]
        assert believed.gpu_count == machine.gpus
        if machine.gpu:
            assert (believed.gpu_min_w_each, believed.gpu_max_w_each) == (machine.gpu.min_w, machine.gpu.max_w)
            assert status.gpu is not None
            assert status.gpu.current_cap_watts == machine.gpu.max_w

    play(world, story)


def test_all_nodes_in_one_answer_show_what_each_device_enforces() -> None:
    world = simulation(*(node(f"n-{i}", i % 3) for i in range(30)))

    async def story(client: Client) -> None:
        for i in range(0, 30, 2):
            await client.control(f"n-{i}", RAPL, capWatts=400 + i)
        world.step(10.0)
        told = {each["node"]: each for each in (await client.get("/debug/nodes")).body}
        assert len(told) == 30
        for i in range(30):
            cap_w = 400 + i if i % 2 == 0 else None
            assert told[f"n-{i}"]["cpu"]["capWatts"] == cap_w
            assert told[f"n-{i}"]["cpu"]["capWattsApplied"] == pytest.approx(cap_w or 800)
            assert (told[f"n-{i}"]["gpu"] is None) == (i % 3 == 0)

    play(world, story)


def test_energy_counters_add_up_to_the_power_that_was_drawn() -> None:
    world = simulation()
    world.put_pod("team/a", pod("a", "gpu-1", 64, 2))
    drawn_j = 0.0
    for _ in range(20):
        world.step(0.5)
        drawn_j += float(world.fleet.node_w.sum()) * 0.5

    async def story(client: Client) -> None:
        told = (await client.get("/debug/energy")).body
        assert told["elapsedSeconds"] == 10.0
        assert sum(each["nodeJoules"] for each in told["nodes"].values()) == pytest.approx(drawn_j)
        assert told["itJoules"] == pytest.approx(drawn_j)
        parts = told["itJoules"] + told["fanJoules"] + told["compressorJoules"]
        assert told["facilityJoules"] == pytest.approx(parts)

    play(world, story)


def test_events_tell_what_was_commanded_and_what_came_of_it() -> None:
    async def story(client: Client) -> None:
        await client.control("cpu-1", RAPL, capWatts=100)
        last = (await client.get("/debug/events")).body[-1]
        assert last["node"] == "cpu-1"
        assert last["kind"] == "control"
        assert last["message"] == "rapl.set_power_cap_watts 100: applied, 294 W, the nearest in range"

    play(simulation(), story)


def test_metrics_are_a_page_that_prometheus_can_read() -> None:
    world = simulation(node("a"), node("b", 4), node('odd"name'))
    world.step(3.0)

    async def story(client: Client) -> None:
        answer = await client.get("/metrics")
        assert answer.status == 200
        families = {family.name: family for family in text_string_to_metric_families(answer.text)}
        assert families
        assert all(name.startswith("joulie_sim_") for name in families)
        powers = {s.labels["node"]: s.value for s in families["joulie_sim_node_power_watts"].samples}
        assert powers == pytest.approx(dict(zip(world.index, world.fleet.node_w.tolist(), strict=True)))
        energies = {s.labels["node"]: s.value for s in families["joulie_sim_node_energy_joules"].samples}
        assert energies == pytest.approx(dict(zip(world.index, world.fleet.node_energy_j.tolist(), strict=True)))
        assert families["joulie_sim_nodes"].samples[0].value == 3

    play(world, story)


def test_metrics_of_many_nodes_come_in_pieces_while_others_are_answered() -> None:
    world = simulation(*(node(f"n-{i}") for i in range(3_000)))

    async def story(client: Client) -> None:
        page, healthz = await asyncio.gather(client.get("/metrics"), client.get("/healthz"))
        assert page.text.count("joulie_sim_node_power_watts{") == 3_000
        assert healthz.text == "ok\n"
        async with client.session.get(client.url + "/metrics") as response:
            await response.content.readany()  # the rest of it is still on its way
            assert (await client.get("/healthz")).text == "ok\n"

    play(world, story)


def test_the_time_stamp_is_that_of_the_last_step() -> None:
    clock = Clock()
    world = simulation(clock=clock)

    async def story(client: Client) -> None:
        clock.now_s = START_S + 5
        world.step(1.0)
        clock.now_s = START_S + 500  # no more steps are made
        assert (await client.get("/telemetry/cpu-1")).body["ts"] == START_S + 5

    play(world, story)


@pytest.mark.parametrize("model", Catalogue().cpus, ids=lambda model: model.name)
@pytest.mark.parametrize("sockets", ["1", "2"])
def test_simulated_hardware_states_the_maximum_that_the_catalogue_gives_the_twin(model, sockets) -> None:  # type: ignore[no-untyped-def]
    labels = {"joulie.io/hw.cpu-model": model.name.replace(" ", "-"), "joulie.io/hw.cpu-sockets": sockets}
    made = Node("n", labels, capacity_cores=8)
    world = simulation(made)

    async def story(client: Client) -> None:
        told = (await client.get("/state/n")).body
        stated = NodeHardware(ObjectMeta("n"), status=msgspec.convert(told["hardware"], NodeHardwareStatus))
        told_of, bare = (machine_of(made, each, HardwareSettings(), Catalogue()) for each in (stated, None))
        assert told_of.cpu_max_w == bare.cpu_max_w == model.max_w * int(sockets)
        assert told_of.cores == bare.cores

    play(world, story)


def test_whole_numbers_are_written_as_integers() -> None:
    """A reader written in Go refuses `40.0` where it wants an integer."""
    world = simulation()

    async def story(client: Client) -> None:
        answer = await client.control("gpu-1", "dvfs.set_throttle_pct", throttlePct=40)
        assert b'"throttlePct":40,' in msgspec.json.encode(answer.body["state"]["cpu"])
        await client.control("gpu-1", "rapl.set_power_cap_watts", capWatts=500)
        cpu = (await client.get("/telemetry/gpu-1")).body["cpu"]
        assert (cpu["capWatts"], cpu["targetCapWatts"]) == (500, 500)
        assert type(cpu["targetCapWatts"]) is int
        await client.control("gpu-1", "rapl.set_power_cap_watts", capWatts=None)
        assert (await client.get("/telemetry/gpu-1")).body["cpu"]["targetCapWatts"] is None

    play(world, story)
