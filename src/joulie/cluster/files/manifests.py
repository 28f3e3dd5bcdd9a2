"""A cluster from files: the output of `kubectl get -o yaml` or `-o json`, or manifests written by hand."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from msgspec import Struct

from joulie.cluster.decoding import json_documents
from joulie.cluster.decoding.json_documents import JsonError
from joulie.cluster.decoding.objects import Body
from joulie.cluster.files import inputs, yaml_documents
from joulie.cluster.files.collection import Collection
from joulie.cluster.files.yaml_documents import YamlError
from joulie.errors import InputError
from joulie.model.api import PowerBudget
from joulie.model.snapshot import Pod, Snapshot

_LOOKS_LIKE_JSON = re.compile(rb"\s*[\[{]")
_MAX_FLOW_YAML_BYTES = 1_000_000  # anything larger that begins like JSON is JSON


class Loaded(Struct, frozen=True):
    """The content of the files, and warnings about it."""

    snapshot: Snapshot
    warnings: list[str]
    budgets: tuple[PowerBudget, ...] = ()

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        for pod in self.snapshot.pods:
            if pod.name == name and pod.namespace == namespace:
                return pod
        return None


def read(paths: Sequence[str], stdin: BinaryIO) -> Loaded:
    """All objects of all files together; InputError is one line that names file, object and field."""
    collection = Collection()
    with _without_garbage_collection():
        for file, data in inputs.contents(paths, stdin):
            _add(collection, file, data)
    return Loaded(collection.snapshot(), collection.warnings, tuple(collection.budgets))


def read_pod(path: str, stdin: BinaryIO) -> Pod:
    """The one pod in a file; other objects in it are ignored."""
    collection = Collection()
    for file, data in inputs.contents([path], stdin):
        _add(collection, file, data)
    if len(collection.pods) != 1:
        found = f"{len(collection.pods)} Pods" if collection.pods else "no Pod"
        raise InputError(f"{path}: contains {found}, but exactly one is needed")
    return collection.pods[0]


def _add(collection: Collection, file: str, data: bytes) -> None:
    try:
        bodies = _bodies(data)
        if not bodies:
            raise InputError(f"{file}: contains no objects")
        collection.add(file, bodies)
    except (JsonError, YamlError) as error:
        raise InputError(f"{file}: {error}") from None
    except RecursionError:
        raise InputError(f"{file}: nested too deeply") from None


def _bodies(data: bytes) -> Sequence[Body]:
    """The documents of a file; arrays are expanded."""
    if _LOOKS_LIKE_JSON.match(data):
        try:
            return json_documents.bodies(data)
        except JsonError:
            if len(data) > _MAX_FLOW_YAML_BYTES:
                raise
            try:
                documents = yaml_documents.documents(data)  # YAML's flow style looks like JSON too
            except YamlError:
                documents = []
            if not documents:
                raise
    else:
        documents = yaml_documents.documents(data)
    return [body for document in documents for body in (document if isinstance(document, list) else [document])]


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Nothing read here forms reference cycles, and searching for them would take as long as reading."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
