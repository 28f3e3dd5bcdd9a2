"""Decodes one object from JSON to the model; fields that are not used are skipped.

Each function is a `Decode` of the port: a ValueError reads `field.path: what is wrong`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from joulie.cluster.decoding import conversion
from joulie.cluster.decoding.objects import decode
from joulie.cluster.port import (
    NODE_HARDWARE,
    NODE_POWER_PROFILES,
    NODE_TWINS,
    NODES,
    PODS,
    POWER_BUDGETS,
    TELEMETRY_PROFILES,
    Decode,
    Resource,
)
from joulie.model.api import NodeHardware, NodePowerProfile, NodeTwin, PowerBudget, TelemetryProfile
from joulie.model.kubernetes import NodeObject, PodObject
from joulie.model.snapshot import Node, Pin, Pod

T = TypeVar("T")

# Building a decoder costs more than decoding an object, so each is built once.
_NODE = msgspec.json.Decoder(NodeObject)
_POD = msgspec.json.Decoder(PodObject)
_HARDWARE = msgspec.json.Decoder(NodeHardware)
_TWIN = msgspec.json.Decoder(NodeTwin)
_PIN = msgspec.json.Decoder(NodePowerProfile)
_BUDGET = msgspec.json.Decoder(PowerBudget)
_TELEMETRY = msgspec.json.Decoder(TelemetryProfile)


def decode_node(data: bytes) -> Node:
    return conversion.to_node(_typed(data, _NODE, NodeObject))


def decode_pod(data: bytes) -> Pod:
    return conversion.to_pod(_typed(data, _POD, PodObject))


def decode_hardware(data: bytes) -> NodeHardware:
    hardware = _typed(data, _HARDWARE, NodeHardware)
    conversion.check_name(hardware.metadata.name)
    return hardware


def decode_twin(data: bytes) -> NodeTwin:
    twin = _typed(data, _TWIN, NodeTwin)
    conversion.check_twin(twin)
    return twin


def decode_pin(data: bytes) -> Pin:
    return conversion.to_pin(_typed(data, _PIN, NodePowerProfile))


def decode_budget(data: bytes) -> PowerBudget:
    budget = _typed(data, _BUDGET, PowerBudget)
    conversion.check_name(budget.metadata.name)
    return budget


def decode_telemetry(data: bytes) -> TelemetryProfile:
    profile = _typed(data, _TELEMETRY, TelemetryProfile)
    conversion.check_name(profile.metadata.name)
    return profile


DECODERS: Mapping[Resource, Decode[Any]] = {
    NODES: decode_node,
    PODS: decode_pod,
    NODE_HARDWARE: decode_hardware,
    NODE_TWINS: decode_twin,
    NODE_POWER_PROFILES: decode_pin,
    POWER_BUDGETS: decode_budget,
    TELEMETRY_PROFILES: decode_telemetry,
}


def _typed(data: bytes, decoder: msgspec.json.Decoder[T], type_: type[T]) -> T:
    try:
        return decoder.decode(data)
    except ValueError:
        return decode(Raw(data), decoder, type_)  # again, slowly, for a better message
