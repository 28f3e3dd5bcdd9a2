"""A cluster from files: what `kubectl get -o yaml` or `-o json` writes, or manifests written by hand (SPEC 11)."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from msgspec import Struct

from joulie.cluster import files, json_documents, yaml_documents
from joulie.cluster.collection import Collection
from joulie.cluster.json_documents import JsonError
from joulie.cluster.objects import Body
from joulie.cluster.yaml_documents import YamlError
from joulie.errors import InputError
from joulie.model.snapshot import Pod, Snapshot

_LOOKS_LIKE_JSON = re.compile(rb"\s*[\[{]")
_LARGEST_FLOW_YAML = 1_000_000  # bytes; something that begins like JSON and is larger is JSON


class Loaded(Struct, frozen=True):
    """What the files hold, and what a person should know about them."""

    snapshot: Snapshot
    warnings: list[str]

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        for pod in self.snapshot.pods:
            if pod.name == name and pod.namespace == namespace:
                return pod
        return None


def read(paths: Sequence[str], stdin: BinaryIO) -> Loaded:
    """All objects of all files together; InputError is one line that names file, object and field."""
    collection = Collection()
    with _without_garbage_collection():
        for file, data in files.contents(paths, stdin):
            _add(collection, file, data)
    return Loaded(collection.snapshot(), collection.warnings)


def read_pod(path: str, stdin: BinaryIO) -> Pod:
    """The one pod in a file; other objects in it do not matter."""
    collection = Collection()
    for file, data in files.contents([path], stdin):
        _add(collection, file, data)
    if len(collection.pods) != 1:
        found = f"{len(collection.pods)} Pods" if collection.pods else "no Pod"
        raise InputError(f"{path}: holds {found}, but exactly one is needed")
    return collection.pods[0]


def _add(collection: Collection, file: str, data: bytes) -> None:
    try:
        bodies = _bodies(data)
        if not bodies:
            raise InputError(f"{file}: holds no objects")
        collection.add(file, bodies)
    except (JsonError, YamlError) as error:
        raise InputError(f"{file}: {error}") from None
    except RecursionError:
        raise InputError(f"{file}: nested too deeply") from None


def _bodies(data: bytes) -> Sequence[Body]:
    """The file's documents, and the elements of those that are arrays."""
    if _LOOKS_LIKE_JSON.match(data):
        try:
            return json_documents.bodies(data)
        except JsonError:
            if len(data) > _LARGEST_FLOW_YAML:
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
    """Nothing read here refers to itself, yet looking for such garbage would take as long as the reading."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
