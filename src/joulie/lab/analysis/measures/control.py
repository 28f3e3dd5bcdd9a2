"""What caps and decisions did, how large the work was, and what it took to compute."""

from __future__ import annotations

from math import isfinite

from joulie.lab.analysis.measures.facts import Measure, RunFacts
from joulie.lab.traces.room import CPUS, GPUS


def _load_pct(run: RunFacts, resource: str) -> float | None:
    """Of what all of them can do uncapped while jobs arrive; None where there is no such work."""
    load = run.offered.get(resource, 0.0)
    return 100 * load if load > 0 and isfinite(load) else None


MEASURES = (
    Measure("cap_violation_s", "Above a cap", "node-s", 0, lambda run: run.counted.cap_violation_s),
    Measure("throttled_s", "Too hot for full speed", "node-s", 0, lambda run: run.counted.throttled_s),
    Measure("transitions", "Changes of node states", "", 0, lambda run: run.counted.transitions),
    Measure("wakes", "Nodes woken", "", 0, lambda run: run.counted.wakes),
    Measure("twin_error_pct", "Error of the twins", "% of maximum", 2, lambda run: run.counted.twin_error_pct),
    Measure("cpu_device_hours", "CPU work", "core-h", 0, lambda run: run.cpu_hours, ""),
    Measure("gpu_device_hours", "GPU work", "GPU-h", 0, lambda run: run.gpu_hours, ""),
    Measure("cpu_load_pct", "Load of the CPUs", "%", 1, lambda run: _load_pct(run, CPUS), ""),
    Measure("gpu_load_pct", "Load of the GPUs", "%", 1, lambda run: _load_pct(run, GPUS), ""),
    Measure("jobs", "Jobs", "", 0, lambda run: len(run.jobs), ""),
    Measure("pods", "Pods", "", 0, lambda run: run.jobs.pods, ""),
    Measure(
        *("decision_cpu_s", "CPU time of decisions", "s", 2),
        lambda run: run.counted.decision_cpu_s,
        "",
        repeatable=False,
    ),
    Measure("wall_s", "Time to simulate", "s", 2, lambda run: run.counted.wall_s, "", repeatable=False),
)
