"""A catalogue: find a model by the name that a node, a driver or a person gives it; add models from a file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Struct

from joulie.catalogue.builtin import CPUS, GPUS
from joulie.catalogue.entries import CpuModel, GpuModel, matches, words
from joulie.errors import InputError


class Catalogue(Struct, frozen=True):
    """Models by preference: the first that matches a name is the one."""

    cpus: tuple[CpuModel, ...] = CPUS
    gpus: tuple[GpuModel, ...] = GPUS

    def cpu(self, name: str | None) -> CpuModel | None:
        return _find_cpu(self.cpus, name) if name else None

    def gpu(self, name: str | None) -> GpuModel | None:
        return _find_gpu(self.gpus, name) if name else None


@lru_cache(maxsize=4096)  # a cluster repeats few names on many nodes
def _find_cpu(cpus: tuple[CpuModel, ...], name: str) -> CpuModel | None:
    return next((cpu for cpu in cpus if matches(cpu, words(name))), None)


@lru_cache(maxsize=4096)
def _find_gpu(gpus: tuple[GpuModel, ...], name: str) -> GpuModel | None:
    return next((gpu for gpu in gpus if matches(gpu, words(name))), None)


class _CatalogueFile(Struct, forbid_unknown_fields=True):
    cpu: tuple[CpuModel, ...] = ()
    gpu: tuple[GpuModel, ...] = ()


def extend(catalogue: Catalogue, content: Mapping[str, Any], origin: str) -> Catalogue:
    """The catalogue with the `[[cpu]]` and `[[gpu]]` entries of a file before its own."""
    try:
        added = msgspec.convert(content, _CatalogueFile)
    except msgspec.ValidationError as error:
        raise InputError(f"{origin}: {error}") from None
    entries: tuple[CpuModel | GpuModel, ...] = (*added.cpu, *added.gpu)
    for entry in entries:
        _check(entry, origin)
    return Catalogue(_unique(added.cpu, origin) + catalogue.cpus, _unique(added.gpu, origin) + catalogue.gpus)


def _check(entry: CpuModel | GpuModel, origin: str) -> None:
    for name in (entry.name, *entry.aliases):
        if not words(name):  # it would match whatever a node is called
            raise InputError(f"{origin}: name {name!r} has no letter or digit")
    if isinstance(entry, GpuModel):
        low, high = entry.min_w, entry.max_w
    else:
        low, high = entry.ctdp_min_w, entry.max_w
        curve = entry.node_curve_w
        if curve is not None and not all(0 < a <= b < math.inf for a, b in pairwise(curve)):
            raise InputError(f"{origin}: {entry.name}: node_curve_w must rise from idle to full load")
    if low is not None and low > high:
        raise InputError(f"{origin}: {entry.name}: lowest cap {low:g} W is above the highest {high:g} W")


def _unique(entries: Iterable[Any], origin: str) -> tuple[Any, ...]:
    seen: dict[str, Any] = {}
    for entry in entries:
        if entry.name in seen:
            raise InputError(f"{origin}: {entry.name} appears twice")
        seen[entry.name] = entry
    return tuple(seen.values())
