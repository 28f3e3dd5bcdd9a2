"""An experiment that takes next to no time: a handful of nodes, an hour of short jobs."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from joulie.lab.experiment.definition import Experiment, parse_experiment
from joulie.lab.runs.store import load_results

SMALL = """
question = "Do caps save energy?"
seeds = [3, 4]
baseline = "full"
[trace]
hours = 1
load = 0.4
duration_scale = 0.1
[[cluster.nodes]]
count = 4
[[cluster.nodes]]
count = 1
gpu = "H100 SXM"
gpus = 8
[policy]
name = "uniform"
[variants]
full = {}
capped = { policy.gpu_cap_pct = 60, policy.cpu_cap_pct = 60 }
"""


def small_file(folder: Path, text: str = SMALL, name: str = "small.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def small_experiment(text: str = SMALL, folder: Path | None = None) -> Experiment:
    return parse_experiment(text, "small.toml", folder or Path())


def digests(folder: Path) -> dict[tuple[str, str, int], str]:
    """Of every result in a folder."""
    return {
        (facet, variant, seed): run.provenance.digest
        for facet, by_variant in load_results(folder).runs.items()
        for variant, by_seed in by_variant.items()
        for seed, run in by_seed.items()
    }


def dask_cluster(workers: int, *, threads: int = 1) -> Any:
    """Processes on this machine. Its page is on a free port: the usual one is taken where two tests have a cluster."""
    distributed: Any = import_module("distributed")  # which has types for some of its functions only
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=threads, processes=True, dashboard_address="127.0.0.1:0"
    )


class Watched:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.begun: list[tuple[int, int]] = []
        self.shares: dict[str, list[float]] = {}
        self.ended: list[str] = []

    def begin(self, total: int, done: int) -> None:
        self.begun.append((total, done))

    def share(self, place: str, share: float) -> None:
        self.shares.setdefault(place, []).append(share)

    def end(self, place: str, failure: str) -> None:
        self.ended.append(place)
