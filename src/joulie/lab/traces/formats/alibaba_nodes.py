"""Nodes of Alibaba's GPU clusters (`openb_node_list_*.csv`) as the groups of an experiment's cluster.

The list has cores and boards and names no CPU: each node gets the smallest of the catalogue with as many cores.
"""

from __future__ import annotations

import json
from collections import Counter
from math import ceil
from pathlib import Path

import numpy as np

from joulie.catalogue.lookup import Catalogue
from joulie.errors import InputError
from joulie.lab.model.setup import NodeGroup
from joulie.lab.traces.formats.columns import read_csv, refuse
from joulie.lab.traces.remarks import Remarks

MAX_CORES, MAX_GPUS, MAX_SOCKETS = 6144, 64, 64


def node_groups(path: Path, catalogue: Catalogue) -> list[NodeGroup]:
    """Like nodes together, the most first; InputError names file, line and field."""
    origin, remarks = str(path), Remarks()
    try:
        with path.open("rb") as file:
            rows = read_csv(file, origin, remarks, ("cpu_milli", "gpu", "model"), text=("model",))
    except OSError as error:
        raise InputError(f"{origin}: cannot be read: {error.strerror}") from None
    cores, gpus = rows.values[:, 0] / 1000.0, rows.values[:, 1]
    models = rows.texts[0]
    nameless = np.asarray([not model for model in models], bool) & (gpus > 0)
    for bad, what, reason in (
        ((cores <= 0) | (cores > MAX_CORES), "cpu_milli", f"is not above 0 and up to {1000 * MAX_CORES:,}"),
        ((gpus < 0) | (gpus > MAX_GPUS) | (gpus != np.floor(gpus)), "gpu", "is not a number of GPUs"),
        (nameless, "model", "is empty, but the node has GPUs"),
    ):
        refuse(bad, rows.lines, origin, what, reason, remarks)
    if not len(cores):
        raise InputError(f"{origin}: holds no node")
    alike = Counter(zip(cores.tolist(), gpus.astype(int).tolist(), models, strict=True))
    return [
        NodeGroup(count, *_cpu(size, catalogue), gpu=model if boards else "", gpus=boards)
        for (size, boards, model), count in alike.most_common()
    ]


def as_toml(groups: list[NodeGroup], catalogue: Catalogue) -> str:
    """To paste into an experiment; a comment names the boards that the catalogue does not know."""
    lines = []
    if unknown := sorted({group.gpu for group in groups if group.gpus and catalogue.gpu(group.gpu) is None}):
        lines.append(f"# Not in the catalogue, to be added with settings.HARDWARE_CATALOG_PATH: {', '.join(unknown)}")
    for group in groups:
        lines += ["[[cluster.nodes]]", f"count = {group.count}", f"cpu = {json.dumps(group.cpu)}"]
        lines.append(f"sockets = {group.sockets}")
        if group.gpus:
            lines += [f"gpu = {json.dumps(group.gpu)}", f"gpus = {group.gpus}"]
        lines.append("")
    return "\n".join(lines).rstrip()


def _cpu(cores: float, catalogue: Catalogue) -> tuple[str, int]:
    """Model and sockets: the fewest cores that are enough, in one or two sockets where that is possible."""
    there = [(cpu.cores * sockets, sockets, cpu.name) for cpu in catalogue.cpus for sockets in (1, 2)]
    enough = [one for one in there if one[0] >= cores]
    if enough:
        _, sockets, name = min(enough)
        return name, sockets
    largest = max(catalogue.cpus, key=lambda cpu: cpu.cores)
    return largest.name, min(MAX_SOCKETS, ceil(cores / largest.cores))
