"""How an API server processes a write: merge, default, separate status from spec, validate. Pure.

Only what Joulie can observe is imitated; Nodes and Pods are not validated.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Raw

from joulie.cluster.crds.definitions import KINDS
from joulie.cluster.decoding import conversion, objects
from joulie.cluster.port import NODES, PODS, ClusterError, ConflictError, Resource
from joulie.model import names

Body = dict[str, Any]

BAD_REQUEST, INVALID = 400, 422
_WITH_STATUS_IN_CORE = frozenset({NODES, PODS})
_API_CLASSES: dict[str, Any] = {kind.kind: kind.api_class for kind in KINDS}
_DECODERS = {kind: msgspec.json.Decoder(api_class) for kind, api_class in _API_CLASSES.items()}
_OWNED_BY_THE_SERVER = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
_OMITTED_WHEN_EMPTY = ("labels", "annotations", "finalizers", "ownerReferences")


def is_custom(resource: Resource) -> bool:
    return resource.group == names.GROUP


def has_status(resource: Resource) -> bool:
    return is_custom(resource) or resource in _WITH_STATUS_IN_CORE


def plain(body: Mapping[str, Any]) -> Body:
    """A deep copy, via JSON as over the network."""
    copy = msgspec.json.decode(msgspec.json.encode(body))
    if not isinstance(copy, dict):
        raise ClusterError("the body is not an object", status=BAD_REQUEST)
    return copy


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386: mappings are merged by key, None removes a key, all else replaces; arguments are not modified."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def prepared(resource: Resource, body: Body, namespace: str) -> Body:
    """A body to create, with kind, name and namespace set; fields that the server assigns are dropped."""
    metadata = dict(body.get("metadata") or {})
    if metadata.get("resourceVersion"):
        raise ClusterError("resourceVersion should not be set on objects to be created", status=BAD_REQUEST)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = f"{metadata['generateName']}{secrets.token_hex(3)[:5]}"
    if resource.namespaced:
        metadata["namespace"] = namespace
    for owned in _OWNED_BY_THE_SERVER:
        metadata.pop(owned, None)
    try:
        conversion.check_name(metadata.get("name") or "")
    except ValueError as error:
        raise ClusterError(f"{resource.kind} is invalid: {error}", status=INVALID) from None
    complete = {"apiVersion": resource.api_version, "kind": resource.kind, **body, "metadata": metadata}
    if complete["kind"] != resource.kind or complete["apiVersion"] != resource.api_version:
        raise ClusterError(f"the body is not a {resource.api_version} {resource.kind}", status=BAD_REQUEST)
    if is_custom(resource):
        complete.pop("status", None)
    elif resource == PODS:
        complete["status"] = {"phase": "Pending"}
    return complete


def created(resource: Resource, body: Body, uid: UUID, timestamp: str) -> Body:
    """A prepared object with the fields that the server assigns."""
    metadata = body["metadata"] | {"uid": str(uid), "creationTimestamp": timestamp}
    if is_custom(resource):
        metadata["generation"] = 1
    return body | {"metadata": _without_empty(metadata)}


def updated(resource: Resource, old: Body, wanted: Body, *, status: bool) -> Body:
    """The old object with those parts of the new one that this kind of write may change."""
    if status:
        return _with_part(old, "status", wanted)
    before, metadata = old["metadata"], dict(wanted.get("metadata") or {})
    for owned in (*_OWNED_BY_THE_SERVER, "name", "namespace"):
        metadata.pop(owned, None)
        if owned in before:
            metadata[owned] = before[owned]
    metadata["resourceVersion"] = before["resourceVersion"]
    new = wanted | {"apiVersion": old["apiVersion"], "kind": old["kind"], "metadata": _without_empty(metadata)}
    if has_status(resource):
        new = _with_part(new, "status", old)
    if is_custom(resource) and _content(new) != _content(old):
        new["metadata"]["generation"] = before["generation"] + 1
    return new


def check_preconditions(resource: Resource, old: Body, wanted: Body) -> None:
    """A version or uid in the body is a precondition."""
    metadata, before = wanted.get("metadata") or {}, old["metadata"]
    for field in ("resourceVersion", "uid"):
        if metadata.get(field) and metadata[field] != before[field]:
            raise ConflictError(
                f'{resource.plural} "{before["name"]}": the object has been modified; please apply your changes to '
                f"the latest version ({field} is {before[field]})",
                status=409,
            )
    if metadata.get("name", before["name"]) != before["name"]:
        raise ClusterError("the name of the object does not match the name in the URL", status=BAD_REQUEST)


def check_schema(resource: Resource, encoded: bytes) -> None:
    """Rejects what the CustomResourceDefinition would reject; both come from the same classes."""
    decoder = _DECODERS.get(resource.kind) if is_custom(resource) else None
    if decoder is None:
        return
    try:
        objects.decode(Raw(encoded), decoder, _API_CLASSES[resource.kind])
    except ValueError as error:
        raise ClusterError(f"{resource.kind}.{resource.group} is invalid: {error}", status=INVALID) from None


def _with_part(target: Body, part: str, source: Body) -> Body:
    result = {key: value for key, value in target.items() if key != part}
    return result | {part: source[part]} if part in source else result


def _content(body: Body) -> Body:
    return {key: value for key, value in body.items() if key not in ("metadata", "status")}


def _without_empty(metadata: Body) -> Body:
    return {key: value for key, value in metadata.items() if value or key not in _OMITTED_WHEN_EMPTY}


Clock = Callable[[], float]
