"""The jobs of a generated trace, but for their times: families, sizes, durations, gangs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from joulie.errors import InputError
from joulie.lab.model.jobs import Codes, Flags, Numbers
from joulie.lab.model.setup import DEFAULT_GPU_SHARE, MAX_JOBS, TraceSetup
from joulie.lab.traces import families as known
from joulie.lab.traces.arrivals import to_milliseconds
from joulie.lab.traces.families import FAMILIES
from joulie.lab.traces.room import CPUS, GPUS, Room

BATCHES = (4096, 16_384, 65_536)  # workloads that are drawn at once; the last again and again
GANGS_BESIDE = 4  # the cluster could hold so many of the largest gangs at once, unless they are single pods


@dataclass(frozen=True, slots=True)
class Drawn:
    """One element a job, in the order in which jobs come; small numbers are kept small, for memory costs time."""

    workload: Codes
    trial: NDArray[np.int16]  # place among the jobs of its workload
    family: Codes
    duration_s: Numbers
    cores: Numbers
    gpus: NDArray[np.int16]
    workers: NDArray[np.int16]
    servers: NDArray[np.int16]
    performance: Flags
    application: NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.family)

    def first(self, count: int) -> Drawn:
        return Drawn(*(getattr(self, part.name)[:count] for part in fields(self)))


class Drawing:
    """Draws jobs that fit a cluster."""

    def __init__(self, trace: TraceSetup, room: Room, seed: Sequence[int]) -> None:
        self._seed, self._trace, self._room = seed, trace, room
        share = _gpu_share(trace, room)
        shares = [family.share * (share if family.gpu_work else 1 - share) for family in FAMILIES]
        self._shares = np.asarray(shares)
        most = max(1, room.most_gpus)
        self._gpu_counts = np.minimum(known.GPU_COUNTS, known.GPU_COUNTS[most >= known.GPU_COUNTS].max())
        per_gpu = min([known.MAX_CORES_PER_GPU, *(n.cores / n.gpus for n in room.nodes if n.gpus)])
        self._cores_per_gpu = 2.0 ** np.floor(np.log2(per_gpu))
        self._worker_slots = np.asarray(
            [
                room.slots(self._cores_per_gpu * gpus, int(gpus)) // GANGS_BESIDE if share else 0
                for gpus in self._gpu_counts
            ]
        )
        self.server_cores = min(known.SERVER_CORES, _cores_beside_gpus(room))
        self._server_slots = 0
        if self.server_cores:
            beside = [n for n in room.nodes if not n.gpus]
            slots = sum(n.machines * n.holds(self.server_cores, 0) for n in beside)
            self._server_slots = min(slots, int(known.GANG_SIZES.max()))  # no gang is larger

    def jobs(self, count: int) -> Drawn:
        """Exactly so many; of the last workload maybe not all."""
        parts: list[Drawn] = []
        while sum(map(len, parts)) < count:
            parts.append(self._batch(parts))
        return _joined(parts).first(count)

    def work(self, load: float, span_s: float) -> Drawn:
        """Until the scarcer of CPUs and GPUs is asked for this share of what it could do."""
        parts: list[Drawn] = []
        asked = np.zeros(2)
        while asked.max() < load * span_s:
            parts.append(self._batch(parts))
            asked += [part.sum() for part in self._asked(parts[-1])]
            if sum(map(len, parts)) * load * span_s > MAX_JOBS * asked.max():
                raise InputError(f"trace.load: more than {MAX_JOBS:,} jobs would make it: fewer hours or longer jobs")
        drawn = _joined(parts)
        loads = np.maximum(*(np.cumsum(part) for part in self._asked(drawn))) / span_s
        past = int(np.searchsorted(loads, load))
        nearer = past > 0 and (past == len(loads) or load - loads[past - 1] < loads[past] - load)
        return drawn.first(past if nearer else past + 1)

    def _asked(self, drawn: Drawn) -> tuple[Numbers, Numbers]:
        """How long each job would keep all CPUs, and all GPUs, busy."""
        capacity = self._room.capacity
        on_cores = np.where(drawn.gpus > 0, drawn.servers * self.server_cores, drawn.cores) * drawn.duration_s
        on_boards = drawn.gpus * drawn.workers * drawn.duration_s
        return on_cores / (capacity[CPUS] or np.inf), on_boards / (capacity[GPUS] or np.inf)

    def _batch(self, earlier: Sequence[Drawn]) -> Drawn:
        """The next workloads: batches do not depend on how many are wanted, so that more work begins with the same."""
        first = int(earlier[-1].workload[-1]) + 1 if earlier else 0
        rng = np.random.default_rng([*self._seed, len(earlier)])
        return self._workloads(rng, BATCHES[min(len(earlier), len(BATCHES) - 1)], first)

    def _workloads(self, rng: np.random.Generator, count: int, first: int) -> Drawn:
        family = _choice(rng, self._shares, count)
        gpu_work = family < known.PREPROCESS
        size = _choice(rng, known.GPU_COUNT_SHARES, count)
        gpus = np.where(gpu_work, self._gpu_counts[size], 0)
        cores = np.where(gpu_work, gpus * self._cores_per_gpu, 0.0)
        for cpu_family, (values, shares) in known.CORES.items():
            here = np.flatnonzero(family == cpu_family)
            cores[here] = np.minimum(values, self._largest_power())[_choice(rng, shares, len(here))]
        workers, servers = np.ones(count, np.int16), np.zeros(count, np.int16)
        gang = np.flatnonzero((family == known.DISTRIBUTED) | (family == known.PARAMETER_SERVER))
        wanted = known.GANG_SIZES[_choice(rng, known.GANG_SHARES, len(gang))]
        workers[gang] = np.maximum(1, np.minimum(wanted, self._worker_slots[size[gang]]))
        served = gang[family[gang] == known.PARAMETER_SERVER]
        servers[served] = np.minimum(-(-workers[served] // known.WORKERS_PER_SERVER), self._server_slots)
        performance = rng.random(count) < self._trace.performance_share
        trials = np.ones(count, np.int64)
        tried = np.flatnonzero(family == known.HPO)
        trials[tried] = known.TRIALS[_choice(rng, known.TRIAL_SHARES, len(tried))]
        workload = np.repeat(np.arange(count), trials)
        jobs = len(workload)
        trial = np.arange(jobs) - np.repeat(np.cumsum(trials) - trials, trials)
        family = family[workload]
        return Drawn(
            workload=(workload + first).astype(np.int32),
            trial=trial.astype(np.int16),
            family=family.astype(np.int32),
            duration_s=self._durations(rng, family),
            cores=cores[workload],
            gpus=gpus[workload].astype(np.int16),
            workers=workers[workload],
            servers=servers[workload],
            performance=performance[workload],
            application=rng.integers(0, known.APPLICATIONS, jobs, dtype=np.int16),
        )

    def _durations(self, rng: np.random.Generator, family: NDArray[np.intp]) -> Numbers:
        scale = self._trace.duration_scale
        median, sigma, low, high = (
            np.asarray([getattr(one, name) for one in FAMILIES])[family]
            for name in ("median_s", "sigma", "shortest_s", "longest_s")
        )
        drawn = median * np.exp(sigma * rng.standard_normal(len(family)))
        if self._trace.longest_hours is not None:  # whatever the scale
            return to_milliseconds(np.minimum(np.maximum(drawn, low) * scale, self._trace.longest_hours * 3600.0))
        return to_milliseconds(np.clip(drawn, low, high) * scale)

    def _largest_power(self) -> float:
        """The largest power of two of cores that a pod of CPU work can have."""
        return float(2.0 ** np.floor(np.log2(max(1.0, self._room.cores_for_cpu_work))))


def _gpu_share(trace: TraceSetup, room: Room) -> float:
    usual = 0.0 if not room.most_gpus else DEFAULT_GPU_SHARE if room.cores_for_cpu_work else 1.0
    share = usual if trace.gpu_share is None else trace.gpu_share
    if share and not room.most_gpus:
        raise InputError(f"trace.gpu_share: {share:g}, but no node of the cluster has a GPU")
    if share < 1 and not room.cores_for_cpu_work:
        raise InputError(
            f"trace.gpu_share: {share:g}, but no node of the cluster takes CPU work (cluster.cpu_work_on_gpu_nodes)"
        )
    return share


def _cores_beside_gpus(room: Room) -> float:
    """Of the largest node without GPUs; where there is none, parameter servers live inside the workers' pods."""
    return max((n.cores for n in room.nodes if not n.gpus), default=0.0)


def _choice(rng: np.random.Generator, shares: Numbers, count: int) -> NDArray[np.intp]:
    """Places in `shares`, as often as these say."""
    chance = rng.random(count)
    place = np.zeros(count, np.intp)
    for edge in np.cumsum(shares / shares.sum())[:-1]:  # few, so faster than a search
        place += chance >= edge
    return place


def _joined(parts: Sequence[Drawn]) -> Drawn:
    return Drawn(*(np.concatenate([getattr(one, part.name) for one in parts]) for part in fields(Drawn)))
