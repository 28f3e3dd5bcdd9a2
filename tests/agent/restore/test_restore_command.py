"""`joulie agent restore`: no API server, no agent; one line a value; 1 when something is left."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from joulie.agent.budget.order_file import OrderFile, order_path
from joulie.agent.enforcement.node_control import NodeControl
from joulie.agent.outcome import CapLimits
from joulie.agent.restore.journal import journal_path, read_boot_id
from joulie.control.budget.counting import Order, Pair
from joulie.control.budget.holding import Kept
from joulie.devices.cpufreq.capper import Cpufreq
from joulie.devices.rapl.capper import Rapl
from joulie.devices.sysfs import SysFs
from joulie.settings import DvfsSettings
from tests.agent.held_nodes import Held, entries_on_disk, target
from tests.agent.simulated_node import LIMITS, NODE, UNCAPPED, SimulatedNode, served
from tests.devices.enforcing import Clock
from tests.devices.sysfs_pieces import Tree
from tests.devices.sysfs_trees import build
from tests.simulator.grounds import node, simulation
from tests.support.cli_runner import Outcome, joulie


class Capped:
    """A two-socket machine whose agent was killed while its cap was in force."""

    def __init__(self, folder: Path) -> None:
        self.tree: Tree = build("intel-xeon-6148-dual", folder)
        self.state_dir = folder / "state"
        self.found = self.values
        held = Held(self.state_dir, [Rapl(SysFs(self.tree.sys), Clock())], boot_id=read_boot_id())
        held.enforce(target(cpu_w=200))
        assert self.values != self.found

    @property
    def values(self) -> list[str]:
        names = ("constraint_0_power_limit_uw", "constraint_1_power_limit_uw", "enabled")
        return [self.tree.text(f"{zone}/{name}") for zone in self.tree.zones() for name in names]

    def restore(self, **more: str) -> Outcome:
        return joulie("agent", "restore", env={**self.env, **more})

    @property
    def env(self) -> dict[str, str]:
        return {"STATE_DIR": str(self.state_dir), "HOST_SYS_PATH": str(self.tree.sys)}


@pytest.fixture
def capped(tmp_path: Path) -> Capped:
    return Capped(tmp_path)


def test_puts_everything_back_with_a_line_for_each_value(capped: Capped) -> None:
    answer = capped.restore()
    assert (answer.code, answer.err) == (0, "")
    assert capped.values == capped.found
    zone = "/sys/devices/virtual/powercap/intel-rapl/intel-rapl:0"
    assert f"node-1: {zone} constraint_0_power_limit_uw restored to 150000000" in answer.out.splitlines()
    assert len(answer.out.splitlines()) == 6
    assert entries_on_disk(capped.state_dir) == {}


def test_again_there_is_nothing_to_do(capped: Capped) -> None:
    capped.restore()
    assert capped.restore() == Outcome(0, "nothing to restore\n", "")


def test_without_a_state_folder_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert joulie("agent", "restore", env={"STATE_DIR": str(tmp_path / "none")}).code == 0


def test_a_vanished_package_stays_in_the_journal_is_said_and_makes_the_exit_code_1(capped: Capped) -> None:
    copy = capped.tree.sys.with_name("copy")
    shutil.copytree(capped.tree.sys, copy, symlinks=True)
    capped.tree.remove_zone("package-1")
    answer = capped.restore()
    assert answer.code == 1
    lines = answer.out.splitlines()
    assert sum("restored to" in line for line in lines) == 3
    assert sum("not restored, it stays in the journal" in line and "intel-rapl:1" in line for line in lines) == 3
    assert len(entries_on_disk(capped.state_dir)) == 3
    assert joulie("agent", "restore", env={**capped.env, "HOST_SYS_PATH": str(copy)}).code == 0
    assert entries_on_disk(capped.state_dir) == {}


def test_a_journal_that_cannot_be_read_touches_nothing_and_says_so(capped: Capped) -> None:
    journal_path(capped.state_dir).write_text("garbage")
    before = capped.values
    for _ in range(2):
        answer = capped.restore()
        assert answer.code == 1
        assert "cannot be used" in answer.out
    assert capped.values == before


def test_a_journal_of_another_boot_is_discarded(capped: Capped) -> None:
    path = journal_path(capped.state_dir)
    path.write_text(path.read_text().replace(read_boot_id(), "another"))
    before = capped.values
    answer = capped.restore()
    assert (answer.code, capped.values) == (0, before)
    assert "earlier boot" in answer.out


def test_a_journal_without_backends_is_understood(capped: Capped) -> None:
    path = journal_path(capped.state_dir)
    contents = json.loads(path.read_bytes())
    for entry in contents["entries"]:
        del entry["backend"]
    path.write_text(json.dumps(contents))
    assert capped.restore().code == 0
    assert capped.values == capped.found


def test_the_order_of_a_power_budget_is_lifted_and_that_is_said(capped: Capped) -> None:
    path = order_path(capped.state_dir)
    OrderFile.open(path, "node-1").keep(Kept(Order("uid-1", 7, Pair(100.0), Pair(100.0))))
    answer = capped.restore()
    assert (answer.code, capped.values) == (0, capped.found)
    assert "node-1: a power budget held it to 100 W for each CPU package (order 7): its caps are lifted" in answer.out
    assert not path.exists()
    assert capped.restore() == Outcome(0, "nothing to restore\n", "")


def test_an_order_stays_as_long_as_a_value_is_not_restored(capped: Capped) -> None:
    path = order_path(capped.state_dir)
    OrderFile.open(path, "node-1").keep(Kept(Order("uid-1", 7, Pair(100.0), Pair(100.0))))
    capped.tree.remove_zone("package-1")
    answer = capped.restore()
    assert answer.code == 1
    assert "node-1: the order of a power budget stays until everything is restored" in answer.out
    assert path.exists()


def test_an_order_that_cannot_be_read_is_lifted_too(capped: Capped) -> None:
    order_path(capped.state_dir).write_text("garbage")
    answer = capped.restore()
    assert (answer.code, capped.values) == (0, capped.found)
    assert "cannot be used" in answer.out
    assert not order_path(capped.state_dir).exists()


def test_simulate_only_writes_nothing(capped: Capped) -> None:
    before = capped.values
    assert capped.restore(SIMULATE_ONLY="true").code == 0
    assert capped.values == before


def test_a_bad_setting_is_named(capped: Capped) -> None:
    answer = capped.restore(CAP_LEASE="soon")
    assert answer.code == 2
    assert answer.complaint.startswith("CAP_LEASE='soon'")


def test_a_throttle_goes_too(tmp_path: Path) -> None:
    tree = build("arm-cm4", tmp_path)
    sysfs = SysFs(tree.sys)
    settings = DvfsSettings(min_freq_khz=600_000)
    held = Held(tmp_path / "state", [Cpufreq(sysfs, settings)], limits=CapLimits(), boot_id=read_boot_id())
    held.enforce(target(cpu_pct=40))
    [(device, attribute)] = entries_on_disk(held.state_dir)
    assert tree.text(f"{device}/{attribute}") != "1800000"
    variables = {"STATE_DIR": str(held.state_dir), "HOST_SYS_PATH": str(tree.sys)}
    assert joulie("agent", "restore", env=variables).code == 0
    assert tree.text(f"{device}/{attribute}") == "1800000"


def test_the_agent_that_still_runs_caps_again_only_with_a_journal(capped: Capped) -> None:
    """The hook runs before the agent is told to stop; whatever the agent does in between can be taken back."""
    held = Held(capped.state_dir, [Rapl(SysFs(capped.tree.sys), Clock())], boot_id=read_boot_id())
    held.enforce(target(cpu_w=200))
    capped.restore()
    held.enforce(target(cpu_w=200))
    assert len(entries_on_disk(capped.state_dir)) == 6
    assert held.restore().left == ()
    assert capped.values == capped.found
    assert not journal_path(capped.state_dir).exists()


@pytest.mark.slow
def test_it_loads_neither_network_nor_arrays_nor_a_cluster(capped: Capped) -> None:
    code = (
        "import sys; from joulie.cli.main import run; code = run(['agent', 'restore']);"
        "heavy = {'numpy', 'aiohttp', 'kubernetes', 'prometheus_client', 'rich', 'joulie.cluster.port',"
        " 'joulie.agent.process', 'pynvml', 'amdsmi'} & set(sys.modules); print(sorted(heavy)); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=capped.env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.fixture
def simulated(tmp_path: Path) -> Iterator[SimulatedNode]:
    with served(simulation(node(NODE, 4)), tmp_path / "pool-state") as beside:
        yield beside


def test_nodes_of_a_pool_are_restored_by_the_addresses_in_their_journals(simulated: SimulatedNode) -> None:
    async def cap(control: NodeControl) -> None:
        await control.enforce(target(cpu_pct=60, gpu_w=400), LIMITS, 0.0)

    simulated.life(cap)
    assert simulated.caps != UNCAPPED
    answer = joulie("agent", "restore", env={"STATE_DIR": str(simulated.state_dir)})
    assert (answer.code, simulated.caps) == (0, UNCAPPED)
    assert f"{NODE}: {simulated.url}/control/{NODE} capWatts restored to no limit" in answer.out.splitlines()


def test_a_pool_node_that_does_not_answer_stays_in_its_journal(simulated: SimulatedNode) -> None:
    async def cap(control: NodeControl) -> None:
        await control.enforce(target(cpu_pct=60), LIMITS, 0.0)

    simulated.life(cap)
    simulated.fault(fault="gone", how="503")
    answer = joulie("agent", "restore", env={"STATE_DIR": str(simulated.state_dir)})
    assert answer.code == 1
    assert "503" in answer.out
    simulated.fault(fault="none")
    assert joulie("agent", "restore", env={"STATE_DIR": str(simulated.state_dir)}).code == 0
    assert simulated.caps == UNCAPPED
