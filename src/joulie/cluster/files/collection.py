"""Collects objects into a snapshot: one reader per kind, every name once, errors with file and object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from joulie.cluster.decoding import conversion, json_documents
from joulie.cluster.decoding.objects import Body, FoundObject, ObjectError, ObjectKind, decode, objects_in
from joulie.errors import InputError, one_line
from joulie.model.api import NodeHardware, NodePowerProfile, NodeTwin, PowerBudget, TelemetryProfile
from joulie.model.kubernetes import NodeObject, PodObject
from joulie.model.names import API_VERSION
from joulie.model.snapshot import Node, Pin, Pod, Snapshot

MAX_QUOTED_CHARS = 500  # of text quoted from a file


class _Reader(NamedTuple):
    """How one kind is read. A plan without a Node or Pod would be wrong, one without a Joulie object is not."""

    type: Any
    decoder: msgspec.json.Decoder[Any]
    take: Callable[[Collection, Any], None]
    required: bool


class Collection:
    """The objects of all files so far."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: list[Pod] = []
        self.budgets: list[PowerBudget] = []
        self.warnings: list[str] = []
        self.skipped: Counter[ObjectKind] = Counter()  # in the current file
        self._hardware: dict[str, NodeHardware] = {}
        self._twins: dict[str, NodeTwin] = {}
        self._pins: list[Pin] = []
        self._file = ""
        self._file_of: dict[tuple[str, str, str], str] = {}  # by kind, namespace, name

    def add(self, file: str, bodies: Sequence[Body]) -> None:
        """Adds everything in one file; InputError names file, object and field."""
        self._file = file
        self.skipped = Counter()
        position = 0
        try:
            for position, found in enumerate(objects_in(bodies), start=1):
                reader = _READERS.get(found.kind)
                if reader is None:
                    self.skipped[found.kind] += 1
                    continue
                try:
                    reader.take(self, decode(found.body, reader.decoder, reader.type))
                except ValueError as error:
                    self._fault(found, position, str(error), reader.required)
        except ObjectError as error:
            place = _called(error.kind, error.body, position + 1)
            raise InputError(f"{file}: {place}: {one_line(error, MAX_QUOTED_CHARS)}") from None
        for kind, count in sorted(self.skipped.items()):
            objects = "1 object" if count == 1 else f"{count} objects"
            self.warnings.append(f"{file}: skipped {objects} of kind {one_line(kind, MAX_QUOTED_CHARS)}")

    def snapshot(self) -> Snapshot:
        return Snapshot(
            nodes=self.nodes,
            pods=tuple(self.pods),
            hardware=self._hardware,
            twins=self._twins,
            pins=tuple(self._pins),
        )

    def _fault(self, found: FoundObject, position: int, reason: str, required: bool) -> None:
        line = f"{self._file}: {_called(found.kind.kind, found.body, position)}: {one_line(reason, MAX_QUOTED_CHARS)}"
        if required:
            raise InputError(line)
        self.warnings.append(f"{line}; ignored")
        name = _metadata(found.body).get("name")
        if isinstance(name, str) and _showable(name):
            self._claim(found.kind.kind, name)

    def _claim(self, kind: str, name: str, namespace: str = "") -> None:
        """Rejects a second object with the same name, because it is unclear which one counts."""
        identity = kind, namespace, name
        earlier = self._file_of.get(identity)
        if earlier is not None:
            place = "twice" if earlier == self._file else f"here and in {earlier}"
            shown = f"{namespace}/{name}" if namespace else name
            raise InputError(f"{self._file}: {kind}/{shown}: metadata.name: appears {place}")
        self._file_of[identity] = self._file

    def _take_node(self, node_object: NodeObject) -> None:
        node = conversion.to_node(node_object)
        self._claim("Node", node.name)
        self.nodes[node.name] = node

    def _take_pod(self, pod_object: PodObject) -> None:
        pod = conversion.to_pod(pod_object)
        self._claim("Pod", pod.name, pod.namespace)
        self.pods.append(pod)

    def _take_hardware(self, hardware: NodeHardware) -> None:
        conversion.check_name(hardware.metadata.name)
        self._claim("NodeHardware", hardware.metadata.name)
        self._hardware[hardware.metadata.name] = hardware

    def _take_twin(self, twin: NodeTwin) -> None:
        conversion.check_twin(twin)
        self._claim("NodeTwin", twin.node)
        self._twins[twin.node] = twin

    def _take_pin(self, profile: NodePowerProfile) -> None:
        pin = conversion.to_pin(profile)
        self._claim("NodePowerProfile", pin.name)
        self._pins.append(pin)

    def _take_budget(self, budget: PowerBudget) -> None:
        conversion.check_name(budget.metadata.name)
        self._claim("PowerBudget", budget.metadata.name)
        self.budgets.append(budget)

    def _take_telemetry(self, profile: TelemetryProfile) -> None:
        conversion.check_name(profile.metadata.name)
        self._claim("TelemetryProfile", profile.metadata.name)


def _reader(type_: Any, take: Callable[[Collection, Any], None], *, required: bool = False) -> _Reader:
    return _Reader(type_, msgspec.json.Decoder(type_), take, required)


# Building a decoder costs more than decoding an object, so each is built once.
_READERS = {
    ObjectKind("v1", "Node"): _reader(NodeObject, Collection._take_node, required=True),
    ObjectKind("v1", "Pod"): _reader(PodObject, Collection._take_pod, required=True),
    ObjectKind(API_VERSION, "NodeHardware"): _reader(NodeHardware, Collection._take_hardware),
    ObjectKind(API_VERSION, "NodeTwin"): _reader(NodeTwin, Collection._take_twin),
    ObjectKind(API_VERSION, "NodePowerProfile"): _reader(NodePowerProfile, Collection._take_pin),
    ObjectKind(API_VERSION, "PowerBudget"): _reader(PowerBudget, Collection._take_budget),
    ObjectKind(API_VERSION, "TelemetryProfile"): _reader(TelemetryProfile, Collection._take_telemetry),
}


def _called(kind: str, body: Body, position: int) -> str:
    """`Pod/team-a/web-0`, or its position in the file if it has no printable name."""
    metadata = _metadata(body)
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not _showable(name):
        return f"{one_line(kind, MAX_QUOTED_CHARS)} #{position}"
    if kind == "Pod":
        return f"{kind}/{namespace if _showable(namespace) else conversion.DEFAULT_NAMESPACE}/{name}"
    return f"{one_line(kind, MAX_QUOTED_CHARS)}/{name}"


def _metadata(body: Body) -> dict[str, Any]:
    try:
        plain = json_documents.plain(body) if isinstance(body, Raw) else body
    except ValueError:
        return {}
    metadata = plain.get("metadata") if isinstance(plain, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def _showable(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name) <= conversion.MAX_NAME_CHARS and name.isprintable()
