"""The one definition of Joulie's API objects.

Decoding, validation, the CRDs in `deploy/chart/joulie/crds` and the reference page all come from these classes. Every
field that may be absent is None when it is; a description here is what `kubectl explain` says.
"""

from joulie.model.api.budget import PowerBudget, PowerBudgetSpec, PowerBudgetStatus
from joulie.model.api.hardware import NodeHardware, NodeHardwareStatus
from joulie.model.api.profile import NodePowerProfile, NodePowerProfileSpec, NodePowerProfileStatus
from joulie.model.api.telemetry import TelemetryProfile
from joulie.model.api.twin import NodeTwin, NodeTwinSpec, NodeTwinStatus, PowerMeasurement

__all__ = [
    "NodeHardware",
    "NodeHardwareStatus",
    "NodePowerProfile",
    "NodePowerProfileSpec",
    "NodePowerProfileStatus",
    "NodeTwin",
    "NodeTwinSpec",
    "NodeTwinStatus",
    "PowerBudget",
    "PowerBudgetSpec",
    "PowerBudgetStatus",
    "PowerMeasurement",
    "TelemetryProfile",
]
