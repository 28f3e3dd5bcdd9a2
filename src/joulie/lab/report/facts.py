"""How an experiment was run, in words: cluster, work, weather, variants, versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from joulie.lab.experiment.definition import Experiment
from joulie.lab.experiment.seeds import drawn, shown_seeds
from joulie.lab.model.setup import DEFAULT_LOAD, RunSetup, TraceSetup
from joulie.lab.report.drawing.number_format import duration, listed
from joulie.lab.runs.comparison import held_beside
from joulie.lab.runs.store import Provenance, Results, StoredRun

MODELS = "node power from SPECpower results, GPU speed under caps from the Zeus measurements, chiller from EnergyPlus"


TRACES = {
    "philly": "Microsoft’s Philly trace",
    "azure": "Microsoft’s Azure LLM inference trace of 2023",
    "alibaba": "Alibaba’s GPU trace of 2023",
    "swf": "a log in the Standard Workload Format",
}


def source_of(provenance: Provenance, experiment: Experiment) -> str:
    """What computed the numbers of a plot, and from which measurements."""
    files = dict.fromkeys(_origin(case.trace) for case in experiment.cases if case.trace.file)
    work = f"; work {listed(list(files))}" if files else ""
    return f"simulated by joulie lab {provenance.joulie} (plant: {MODELS}{work})"


def facts(results: Results, experiment: Experiment) -> list[tuple[str, str]]:
    """Names and values in the order of reading."""
    base = experiment.case(experiment.baseline, experiment.facets[0])
    runs = [run for by_variant in results.runs.values() for by_seed in by_variant.values() for run in by_seed.values()]
    first = runs[0]
    found = [
        ("Cluster", _cluster(base.setup)),
        ("Work", _work([case.trace for case in experiment.cases], runs)),
        ("Weather", _weather(base.setup)),
        ("Telemetry", _telemetry(base.setup)),
        ("Seeds", f"{shown_seeds(experiment.seeds)}, the same for every variant"),
        ("Baseline", experiment.baseline),
    ]
    for variant in experiment.variants:
        if variant != experiment.baseline:
            changed = _changed(base.setup, experiment.case(variant, experiment.facets[0]).setup)
            held = held_beside(results.runs.get(experiment.facets[0], {}).get(variant, {}))
            found.append((f"Variant {variant}", (changed or "as the baseline") + (f" ({held})" if held else "")))
    if experiment.facets != ("",):
        found.append(("Compared for each of", listed(list(experiment.facets))))
    simulated = sum(run.measures.wall_s for run in runs)
    found += [
        ("Runs", f"{len(runs):,}, {duration(simulated)} of computing"),
        ("Versions", _versions(first.provenance)),
        ("Sources", _sources(first.provenance)),
    ]
    return found


def _cluster(setup: RunSetup) -> str:
    groups = [
        f"{group.count} × {group.sockets} {group.cpu}" + (f" with {group.gpus} {group.gpu}" if group.gpus else "")
        for group in setup.cluster.nodes
    ]
    nodes = sum(group.count for group in setup.cluster.nodes)
    asleep = f"asleep when empty for {duration(setup.plant.sleep_after_s)}" if setup.plant.sleep else "never asleep"
    return f"{nodes:,} nodes ({listed(groups)}), {asleep}; scheduler {setup.scheduler}, policy {setup.policy.name}"


def _work(traces: Sequence[TraceSetup], runs: list[StoredRun]) -> str:
    jobs = [run.measures.jobs for run in runs]
    counted = f"{min(jobs):,}" if min(jobs) == max(jobs) else f"{min(jobs):,} to {max(jobs):,}"
    return f"{counted} jobs a run, {listed(list(dict.fromkeys(map(_origin, traces))))}"


def _origin(trace: TraceSetup) -> str:
    if trace.file:
        known = TRACES.get(trace.format)
        how = "drawn as block bootstraps of" if drawn(trace) else "read from"
        return f"{how} {Path(trace.file).name}" + (f" ({known})" if known else "")
    scarcer = f"{100 * (trace.load or DEFAULT_LOAD):.0f} % of the scarcer of CPUs and GPUs"
    load = "" if trace.jobs else f" at a load of {scarcer}"
    return f"generated for {trace.drawn_hours:g} h of arrivals{load}"


def _weather(setup: RunSetup) -> str:
    weather = setup.weather
    if weather.file:
        return f"read from {Path(weather.file).name}"
    return f"mean {weather.mean_c:g} °C, ± {weather.swing_c:g} °C over the day, noise {weather.noise_c:g} °C"


def _telemetry(setup: RunSetup) -> str:
    told = setup.telemetry
    return f"{told.source}, {duration(told.lag_s)} old, noise {told.noise_pct:g} %"


def _changed(base: RunSetup, other: RunSetup) -> str:
    """policy.name = uniform, policy.gpu_cap_pct = 60."""
    before, after = dict(_flat(msgspec.to_builtins(base))), dict(_flat(msgspec.to_builtins(other)))
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return ", ".join(f"{key} = {after.get(key, 'not set')}" for key in keys)


def _flat(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{place}.{key}" if place else str(key))
    else:
        yield place, value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _versions(provenance: Provenance) -> str:
    names = ("joulie", "python", "numpy", "numba")
    return f"{', '.join(f'{name} {getattr(provenance, name)}' for name in names)}; {provenance.platform}"


def _sources(provenance: Provenance) -> str:
    commit = f"commit {provenance.git_commit[:12]}, " if provenance.git_commit else ""
    return f"{commit}digest {provenance.code[:12]}"
