"""Every setting, parsed once from the environment into frozen dataclasses.

May import: `model` and `errors`. Reads no environment itself: `load` is handed one. A value that cannot be used stops
the program with one line that names the variable, the value and what is allowed.
"""

from joulie.settings.agent import AgentSettings, DvfsSettings
from joulie.settings.decision import (
    DecisionSettings,
    HardwareSettings,
    MarginalSettings,
    PlanSettings,
    TwinSettings,
)
from joulie.settings.extender import ExtenderSettings, ScoreSettings
from joulie.settings.loading import SettingDescription, describe, load
from joulie.settings.operator import OperatorSettings
from joulie.settings.simulator import SimulatorSettings

COMPONENTS: dict[str, type] = {
    "operator": OperatorSettings,
    "extender": ExtenderSettings,
    "agent": AgentSettings,
    "simulator": SimulatorSettings,
}

__all__ = [
    "COMPONENTS",
    "AgentSettings",
    "DecisionSettings",
    "DvfsSettings",
    "ExtenderSettings",
    "HardwareSettings",
    "MarginalSettings",
    "OperatorSettings",
    "PlanSettings",
    "ScoreSettings",
    "SettingDescription",
    "SimulatorSettings",
    "TwinSettings",
    "describe",
    "load",
]
