"""Energy and power, at the wall of the nodes (IT) and of the building (facility).

Energy is counted from the beginning of a run until its last job is done, and besides until the last one arrives. One
device-hour is a core of an uncapped EPYC 9654, or an uncapped H100 SXM, for an hour; how many a run does is a property
of its jobs, so two runs of the same jobs did the same work by construction. Energy by kind of work is that of the nodes
without boards for CPU work and that of those with boards for GPU work. It is left out where CPU work may run on nodes
with boards, because a meter cannot split a node between its pods.
"""

from __future__ import annotations

import numpy as np

from joulie.lab.analysis.measures.facts import J_PER_KWH, Measure, RunFacts, quantile


def _per_1000(kwh: float, hours: float) -> float | None:
    return 1000 * kwh / hours if hours > 0 else None


def _bound_kwh(run: RunFacts) -> float | None:
    return None if run.bound_j is None else run.bound_j / J_PER_KWH


def _over_bound_pct(run: RunFacts) -> float | None:
    bound_kwh = _bound_kwh(run)
    return 100 * (run.it_kwh / bound_kwh - 1) if bound_kwh else None


def _arriving_kwh(run: RunFacts) -> float | None:
    """Until the last job comes, so that the empty tail of a run counts for nobody; of the recorded interval in which it
    comes, the part before it.
    """
    last_s = float(run.jobs.submit_s[-1]) if len(run.jobs) else 0.0
    time_s = run.outcome.series["time_s"]
    if last_s <= 0 or not len(time_s):
        return None
    begin_s = np.concatenate([[0.0], time_s[:-1]])
    counted_s = np.clip(last_s - begin_s, 0.0, time_s - begin_s)
    power_w = run.outcome.series["it_w"] + run.outcome.series["cooling_w"]
    return float(np.sum(power_w * counted_s)) / J_PER_KWH


def _ramp_p99(run: RunFacts) -> float | None:
    """How fast power changes from one recorded interval to the next, up or down."""
    facility_kw, time_s = run.recorded
    if len(time_s) < 3:
        return None
    return quantile(np.abs(np.diff(facility_kw)) / (np.diff(time_s) / 60), 0.99)


MEASURES = (
    Measure(
        *("kwh_per_1000_cpu_hours", "Energy per 1,000 CPU core-hours", "kWh", 2),
        lambda run: _per_1000(run.facility_kwh - run.gpu_kwh, run.cpu_hours) if run.kinds_apart else None,
    ),
    Measure(
        *("kwh_per_1000_gpu_hours", "Energy per 1,000 GPU-hours", "kWh", 1),
        lambda run: _per_1000(run.gpu_kwh, run.gpu_hours) if run.kinds_apart else None,
    ),
    Measure(  # compares runs of one trace, never traces
        *("kwh_per_1000_device_hours", "Energy per 1,000 device-hours, both kinds", "kWh", 2),
        lambda run: _per_1000(run.facility_kwh, run.cpu_hours + run.gpu_hours),
    ),
    Measure("facility_kwh", "Facility energy", "kWh", 1, lambda run: run.facility_kwh),
    Measure("arriving_kwh", "Facility energy while jobs arrive", "kWh", 1, _arriving_kwh),
    Measure("it_kwh", "IT energy", "kWh", 1, lambda run: run.it_kwh),
    Measure("bound_kwh", "Lower bound of IT energy", "kWh", 1, _bound_kwh, ""),
    Measure("over_bound_pct", "IT energy above its bound", "%", 1, _over_bound_pct),
    Measure("pue", "PUE", "", 3, lambda run: run.pue),
    Measure(
        *("peak_kw", "Peak power of the facility, means as recorded", "kW", 1),
        lambda run: float(np.max(run.recorded[0], initial=0.0)),
    ),
    Measure("peak_it_kw", "Peak IT power, means of plant steps", "kW", 1, lambda run: run.counted.peak_it_w / 1000),
    Measure("ramp_p99_kw_per_min", "Ramp, p99", "kW/min", 2, _ramp_p99),
    Measure("idle_kw", "Facility power without work", "kW", 2, lambda run: run.idle.all_w * run.pue / 1000, ""),
    Measure(
        *("idle_gpu_nodes_kw", "… of which nodes with boards", "kW", 2),
        lambda run: run.idle.gpu_nodes_w * run.pue / 1000,
        "",
    ),
    Measure(  # above that, of nodes that are awake at the end until they are switched off
        *("settling_kwh", "Until empty nodes sleep, besides", "kWh", 2),
        lambda run: run.idle.settling_j / J_PER_KWH * run.pue,
        "",
    ),
    Measure(
        *("settling_gpu_nodes_kwh", "… of which nodes with boards", "kWh", 2),
        lambda run: run.idle.settling_gpu_nodes_j / J_PER_KWH * run.pue,
        "",
    ),
    Measure("settled_h", "… which takes", "h", 2, lambda run: run.idle.settled_s / 3600, ""),
)
