"""Trace files in Joulie's format to jobs: decoded by the block, checked in arrays, each fault with line and field."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import IO, Any, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from joulie.cluster.decoding.conversion import required_terms
from joulie.control.classify import is_eco_only, is_performance_only
from joulie.lab.model.jobs import ANY_MODEL, JobTable, Numbers
from joulie.lab.traces.families import NAMES
from joulie.lab.traces.formats.gangs import Pods, table
from joulie.lab.traces.formats.records import MAX_TIME_S, JobRecord, Record, WorkloadRecord, complaint, decoder
from joulie.lab.traces.remarks import Remarks
from joulie.model.kubernetes import PodSpec
from joulie.model.names import AMD_GPU, ECO, NVIDIA_GPU, PERFORMANCE, POWER_PROFILE_LABEL, STANDARD
from joulie.model.quantity import Quantity, parse_quantity
from joulie.model.snapshot import Pod

BLOCK_BYTES = 4 << 20
ECO_ONLY = "some pods ask for eco nodes alone; the lab lets them run anywhere"
MAX_CORES, MAX_GPUS = 65_536, 4096


class Read(NamedTuple):
    """Jobs, and the line at which each of their pods stands."""

    jobs: JobTable
    lines: NDArray[np.int64]


@dataclass(slots=True)
class _Codes:
    """Names to small numbers, in the order in which they come."""

    names: dict[str, int] = field(default_factory=dict)

    def of(self, names: Iterable[str]) -> list[int]:
        return [self.names.setdefault(name, len(self.names)) for name in names]


def read_jsonl(file: IO[bytes], origin: str, remarks: Remarks) -> Read:
    """InputError names file, line and field, unless bad lines are to be skipped."""
    spoiled: set[str] = set()
    return read_records(_decoded(file, origin, remarks, spoiled), spoiled, origin, remarks)


def read_records(
    blocks: Iterable[tuple[NDArray[np.int64], list[Record]]], spoiled: set[str], origin: str, remarks: Remarks
) -> Read:
    """From records with their lines; `spoiled` are gangs with a pod that could not be read, known once all are."""
    families, models = _Codes({name: code for code, name in enumerate(NAMES)}), _Codes()
    parts: list[Pods] = []
    expected: dict[str, tuple[int, int]] = {}  # of gangs: line, pods
    for every, decoded in blocks:
        jobs = [record for record in decoded if isinstance(record, JobRecord)]
        if len(jobs) < len(decoded):
            for line, record in zip(every.tolist(), decoded, strict=True):
                if isinstance(record, WorkloadRecord) and record.gang and record.pod_count is not None:
                    expected[record.workload_id] = (line, record.pod_count)
        if jobs:
            lines = every[np.fromiter((isinstance(record, JobRecord) for record in decoded), bool, len(decoded))]
            parts.append(_pods(jobs, lines, families, models, origin, remarks))
    if not parts:
        raise remarks.no_job(origin)
    pods = Pods.joined(parts)
    if spoiled:
        pods.bad |= pods.gang & np.fromiter((key in spoiled for key in pods.key), bool, len(pods))
    return Read(*table(pods, expected, tuple(families.names), tuple(models.names), origin, remarks))


def _decoded(
    file: IO[bytes], origin: str, remarks: Remarks, spoiled: set[str]
) -> Iterator[tuple[NDArray[np.int64], list[Record]]]:
    """Blocks of records with their line numbers."""
    first = 1
    while block := file.read(BLOCK_BYTES):
        block += file.readline()
        if first == 1:
            block = block.removeprefix(BOM_UTF8)
        count = block.count(b"\n") + (not block.endswith(b"\n"))
        try:
            records = decoder.decode_lines(block)
        except (msgspec.DecodeError, UnicodeDecodeError):
            records = []
        if len(records) == count:
            yield np.arange(first, first + count), records
        else:  # something is wrong, or a line is empty: look at each
            yield _one_by_one(block, first, origin, remarks, spoiled)
        first += count


def _one_by_one(
    block: bytes, first: int, origin: str, remarks: Remarks, spoiled: set[str]
) -> tuple[NDArray[np.int64], list[Record]]:
    lines, records = [], []
    for line, text in enumerate(block.split(b"\n"), start=first):
        if not text.strip():
            continue
        try:
            records.append(decoder.decode(text))
            lines.append(line)
        except msgspec.DecodeError as error:  # a ValidationError is one, too
            remarks.bad(f"{origin}:{line}", *_why(text, error))
            spoiled |= _gang_in(text)
        except UnicodeDecodeError:
            remarks.bad(f"{origin}:{line}", "", "is no UTF-8 text")
    return np.asarray(lines, np.int64), records


def _gang_in(text: bytes) -> set[str]:
    try:
        return gang_of(json.loads(text))
    except (ValueError, RecursionError):
        return set()


def gang_of(pod: Any) -> set[str]:
    """The gang that a bad record belongs to, as far as it can be read."""
    gang = isinstance(pod, dict) and pod.get("gang") and (pod.get("workloadId") or pod.get("jobId"))
    return {gang} if isinstance(gang, str) else set()


def _why(text: bytes, error: msgspec.DecodeError) -> tuple[str, str]:
    """Field and reason. NaN and Infinity are no JSON, but Python reads them, and then the field can be named."""
    if isinstance(error, msgspec.ValidationError):
        return complaint(error)
    try:
        msgspec.convert(json.loads(text), Record)
    except msgspec.ValidationError as named:
        return complaint(named)
    except (ValueError, RecursionError):
        pass
    return complaint(error)


def _pods(
    jobs: list[JobRecord], lines: NDArray[np.int64], families: _Codes, models: _Codes, origin: str, remarks: Remarks
) -> Pods:
    templates = [job.pod_template for job in jobs]
    works = [job.work for job in jobs]
    profiles = [job.workload_profile for job in jobs]
    sensitivities = [job.sensitivity for job in jobs]
    requests = [template.requests for template in templates]
    cores, bad_cores = _amounts([asked.cpu for asked in requests])
    nvidia, bad_nvidia = _amounts([asked.nvidia for asked in requests])
    amd, bad_amd = _amounts([asked.amd for asked in requests])
    gpus = nvidia + amd
    deadlines = [job.deadline_offset_sec for job in jobs]
    selectors = [template.node_selector for template in templates]
    wanted = ["" if selector is UNSET else selector.gpu_model for selector in selectors]
    coded = np.asarray(models.of(name for name in wanted if name), np.int32)
    model = np.full(len(jobs), ANY_MODEL, np.int32)
    model[np.fromiter((bool(name) for name in wanted), bool, len(jobs))] = coded
    wish = np.fromiter((_wish(job) for job in jobs), np.int8, len(jobs))
    if ECO_ONLY not in remarks.notes and np.any(wish == _Wish.ECO):
        remarks.notes.append(ECO_ONLY)
    pods = Pods(
        line=lines,
        key=[(job.workload_id or job.job_id) if job.gang else job.job_id for job in jobs],
        gang=np.fromiter((job.gang for job in jobs), bool, len(jobs)),
        submit_s=_numbers(job.submit_time_offset_sec for job in jobs),
        deadline_s=_numbers(np.nan if due is UNSET else due for due in deadlines),
        family=np.asarray(families.of(job.workload_type for job in jobs), np.int32),
        cores=cores,
        gpus=np.nan_to_num(gpus).astype(np.int32),
        gpu_model=model,
        performance=wish == _Wish.PERFORMANCE,
        cpu_units=_numbers(work.cpu_units for work in works),
        gpu_units=_numbers(work.gpu_units for work in works),
        cpu_utilisation=_numbers(profile.cpu_utilization for profile in profiles),
        gpu_utilisation=_numbers(profile.gpu_utilization for profile in profiles),
        memory_intensity=_numbers(profile.memory_intensity for profile in profiles),
        io_intensity=_numbers(profile.io_intensity for profile in profiles),
        feed_intensity=_numbers(profile.cpu_feed_intensity_gpu for profile in profiles),
        cpu_sensitivity=_numbers(sensitive.cpu for sensitive in sensitivities),
        gpu_sensitivity=_numbers(sensitive.gpu for sensitive in sensitivities),
        bad=np.zeros(len(jobs), bool),
    )
    asked = "podTemplate.requests"
    for faulty, what, reason in (
        (wish == _Wish.UNREADABLE, "podTemplate.affinity", "has an operator that node affinity does not know"),
        (bad_cores, f"{asked}.cpu", "is not a quantity such as 8 or 500m"),
        (cores > MAX_CORES, f"{asked}.cpu", f"is above {MAX_CORES:,} cores"),
        (bad_nvidia, f"{asked}.{NVIDIA_GPU}", "is not a number of GPUs"),
        (bad_amd, f"{asked}.{AMD_GPU}", "is not a number of GPUs"),
        (gpus != np.floor(gpus), asked, "asks for a part of a GPU"),
        (gpus > MAX_GPUS, asked, f"asks for more than {MAX_GPUS:,} GPUs"),
        ((cores == 0) & (gpus == 0), asked, "asks for neither CPU nor GPU"),
        ((pods.cpu_units > 0) & (cores == 0), "work.cpuUnits", "is CPU work, but the pod asks for no CPU"),
        ((pods.gpu_units > 0) & (gpus == 0), "work.gpuUnits", "is GPU work, but the pod asks for no GPU"),
        (~pods.gang & (pods.cpu_units == 0) & (pods.gpu_units == 0), "work", "is nothing: no cpuUnits, no gpuUnits"),
        (pods.cpu_units > MAX_TIME_S * cores, "work.cpuUnits", "is above ten years of what the pod asks for"),
        (pods.gpu_units > MAX_TIME_S * gpus, "work.gpuUnits", "is above ten years of what the pod asks for"),
        (pods.deadline_s < pods.submit_s, "deadlineOffsetSec", "is before submitTimeOffsetSec"),
    ):
        pods.reject(np.flatnonzero(faulty), what, lambda pod, reason=reason: reason, origin, remarks)  # type: ignore[misc]
    return pods


class _Wish(IntEnum):
    """What a pod asks of a node's profile."""

    ANY, PERFORMANCE, ECO, UNREADABLE = range(4)


def _wish(job: JobRecord) -> _Wish:
    """By its class, or by what its node selector and required affinity rule out, as in a cluster."""
    template = job.pod_template
    classes = (template.annotations.workload_class, template.intent_class, job.intent_class)
    if PERFORMANCE in classes:
        return _Wish.PERFORMANCE
    profile = None if template.node_selector is UNSET else template.node_selector.power_profile
    if profile is not None or template.affinity is not None:
        try:
            terms = required_terms(PodSpec(affinity=template.affinity))
        except ValueError:
            return _Wish.UNREADABLE
        selector = None if profile is None else {POWER_PROFILE_LABEL: profile}
        pod = Pod(job.namespace, job.job_id, "", STANDARD, node_selector=selector, required_terms=terms)
        if is_performance_only(pod, POWER_PROFILE_LABEL):
            return _Wish.PERFORMANCE
        if is_eco_only(pod, POWER_PROFILE_LABEL):
            return _Wish.ECO
    return _Wish.ECO if ECO in classes else _Wish.ANY


def _numbers(values: Iterable[float]) -> Numbers:
    return np.asarray(list(values), np.float64)


def _amounts(quantities: list[Quantity]) -> tuple[Numbers, NDArray[np.bool_]]:
    """Numbers, and where there is none."""
    amounts = _numbers(_amount(quantity) for quantity in quantities)
    bad = np.isnan(amounts)
    return np.where(bad, 0.0, amounts), bad


@lru_cache(maxsize=4096)  # few sizes, very often
def _amount(quantity: Any) -> float:
    try:
        return parse_quantity(quantity)
    except ValueError:
        return np.nan
