"""Settings of the simulator process."""

from __future__ import annotations

from dataclasses import dataclass

from joulie.model.selector import Selector
from joulie.settings.decision import HardwareSettings, max_connections
from joulie.settings.loading import group, setting
from joulie.settings.parsing import ADDRESS, DURATION, SELECTOR, integer, number


@dataclass(frozen=True, slots=True)
class SimulatorSettings:
    """Which nodes are simulated, how time passes, and what the building is like."""

    hardware: HardwareSettings = group(HardwareSettings)
    addr: str = setting("SIM_ADDR", ":18080", ADDRESS, "Where the simulated hardware answers.")
    max_connections: int = max_connections("1024")  # agents and operators of thousands of nodes
    step_s: float = setting("SIM_STEP", "1s", DURATION, "Simulated time of one step.")
    speed: float = setting(
        "SIM_SPEED", "1", number(0, 10_000, above=True), "Simulated seconds that pass in a real one."
    )
    seed: int = setting("SIM_SEED", "1", integer(0, 2**31), "The same seed gives the same load.")
    noise_pct: float = setting("SIM_NOISE_PCT", "5", number(0, 100), "How much loads waver, percent.")
    node_selector: Selector = setting("SIM_NODE_SELECTOR", "", SELECTOR, "Nodes of the cluster that are simulated.")
    outside_c: float = setting("SIM_OUTSIDE_TEMP_C", "15", number(-60, 60), "Air outside the building, °C.")
