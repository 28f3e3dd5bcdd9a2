"""Random but valid clusters for differential tests; the same seed always gives the same case."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random

from tests.oracle.random_cases.nodes import INVENTED_GPUS, random_machine, random_node, whole
from tests.oracle.random_cases.pods import random_pod
from tests.oracle.random_cases.twins import random_pins, random_twin
from tests.oracle.rules.hardware import hardware_of
from tests.oracle.rules.settings import Settings, read_settings
from tests.oracle.rules.snapshot import is_cordoned, name_of, read_snapshot
from tests.oracle.rules.values import Obj, dig, mapping, parse_time

BASE_TIME = 1793534400.0
PROFILE_KEY = "joulie.io/power-profile"
SELECTORS = [
    "",
    "joulie.io/managed",
    "joulie.io/managed=true,team notin (a)",
    "team in (a, b)",
    "!team",
    "joulie.io/managed == true",
    "joulie.io/managed!=false",
    "generation>4",
    "generation<6,joulie.io/managed",
    "joulie.io/rack in (r1),joulie.io/managed=true",
    "team=nobody",
]


@dataclass(frozen=True)
class Case:
    """Input of one comparison."""

    objects: list[Obj] = field(repr=False)
    env: dict[str, str]
    now: float
    pod: Obj = field(repr=False)
    selector: str | None
    policy: str | None
    ambient: float | None


def random_case(seed: int, contested: bool = False) -> Case:
    """One case. ``contested`` adds inputs on which the specification is silent (see ``DECISIONS.md``)."""
    rng = Random(seed)
    now = BASE_TIME + rng.choice([0, rng.randint(0, 10**6), 60 * rng.randint(0, 9)])
    env = _random_env(rng)
    settings = read_settings(env)
    names = _names(rng, rng.choice([1, 2, rng.randint(1, 8), rng.randint(1, 25)]))

    pool = [random_machine(rng) for _ in range(rng.randint(1, 6))]
    objects: list[Obj] = []
    for name in names:
        objects += random_node(rng, name, rng.choice(pool), contested)
    if not contested:
        _drop_lone_minima(objects, settings)
    snapshot = read_snapshot(objects)
    hardware = {name: hardware_of(name, snapshot, settings) for name in names}

    twins = [
        random_twin(rng, name, now, settings.stale_after_s, hardware[name], contested)
        for name in names
        if rng.random() < 0.75
    ]
    if rng.random() < 0.2:
        twins.append(random_twin(rng, "departed", now, settings.stale_after_s, None, contested))
    if not contested:
        _settle_cordoned(objects, twins)
    times = {name_of(twin): parse_time(dig(twin, "status", "lastUpdated")) for twin in twins}
    twin_times = {name: time for name, time in times.items() if time is not None}

    count = rng.choice([0, rng.randint(0, 8), rng.randint(0, 60)])
    pods = [random_pod(rng, f"pod-{i}", names, twin_times, now, contested) for i in range(count)]
    subject = random_pod(rng, "subject", [], {}, now, contested)
    subject["metadata"].pop("deletionTimestamp", None)
    if rng.random() < 0.5:
        pods.append(subject)
    elif contested and pods:
        subject = rng.choice(pods)

    objects += twins + pods + random_pins(rng, names, now, hardware, contested)
    rng.shuffle(objects)
    return Case(
        objects=objects,
        env=env,
        now=now,
        pod=subject,
        selector=rng.choice(SELECTORS) if rng.random() < 0.3 else None,
        policy=rng.choice(["static_partition", "queue_aware_v1", "rule_swap_v1"]) if rng.random() < 0.3 else None,
        ambient=rng.choice([-5.0, 20.0, 25.0, 35.5, 60.0]) if rng.random() < 0.4 else None,
    )


def _names(rng: Random, count: int) -> list[str]:
    """Distinct names whose order as text differs from the order of their numbers."""
    return [f"{rng.choice(['n', 'node-', 'gpu-'])}{number}" for number in rng.sample(range(200), count)]


def _drop_lone_minima(objects: list[Obj], settings: Settings) -> None:
    """A minimum beside an unknown maximum: the specification does not tell whether percentages heed it."""
    snapshot = read_snapshot(objects)
    for name, told in snapshot.hardware.items():
        hardware = hardware_of(name, snapshot, settings)
        if not hardware.cpu_max_known:
            mapping(dig(told, "status", "cpu", "capRange")).pop("minWattsPerSocket", None)
        if not hardware.gpu_max_known:
            mapping(dig(told, "status", "gpu", "capRangePerGpu")).pop("minWatts", None)


def _settle_cordoned(objects: list[Obj], twins: list[Obj]) -> None:
    """No eco label on a cordoned node without twin: the specification does not tell its caps."""
    with_twin = {name_of(twin) for twin in twins}
    for obj in objects:
        if obj["kind"] == "Node" and is_cordoned(obj) and name_of(obj) not in with_twin:
            obj["metadata"]["labels"].pop(PROFILE_KEY, None)


def _random_env(rng: Random) -> dict[str, str]:
    """Settings, each left at its default more often than not."""
    choices = {
        "POLICY_TYPE": ["static_partition", "queue_aware_v1", "rule_swap_v1"],
        "STATIC_HP_FRAC": ["0", "0.1", "0.25", "0.3", "0.5", "0.75", "1"],
        "QUEUE_HP_BASE_FRAC": ["0", "0.2", "0.5", "1"],
        "QUEUE_HP_MIN": ["0", "1", "3", "30"],
        "QUEUE_HP_MAX": ["0", "-1", "1", "2", "5"],
        "QUEUE_PERF_PER_HP_NODE": ["1", "2", "3", "10"],
        "RECONCILE_INTERVAL": ["1m", "90s", "1h30m", "20s"],
        "CPU_WRITE_ABSOLUTE_CAPS": ["true", "false"],
        "PERFORMANCE_CAP_WATTS": ["5000", "700", "350.5"],
        "ECO_CAP_WATTS": ["120", "300", "1"],
        "CPU_PERFORMANCE_CAP_PCT_OF_MAX": ["100", "95", "87.5"],
        "CPU_ECO_CAP_PCT_OF_MAX": ["60", "20", "45.5", "80"],
        "GPU_WRITE_ABSOLUTE_CAPS": ["true", "false"],
        "GPU_PERFORMANCE_CAP_PCT_OF_MAX": ["100", "90"],
        "GPU_ECO_CAP_PCT_OF_MAX": ["60", "30", "50", "72.5"],
        "GPU_PRODUCT_LABEL_KEYS": [
            "nvidia.com/gpu.product,joulie.io/gpu.product",
            "amd.com/gpu.product, joulie.io/gpu.product",
        ],
        "AMBIENT_TEMP_C": ["20", "15", "27.5", "40"],
        "REFERENCE_NODE_POWER_WATTS": ["4000", "2500", "12000", "auto"],
        "RACK_CAPACITY_WATTS": ["50000", "8000", "17250"],
        "TWIN_STALENESS_THRESHOLD": ["5m", "90s", "1h"],
        "ENABLE_FACILITY_METRICS": ["true", "false"],
        "MARGINAL_CPU_UTIL_COEFF": ["0.7", "0.8", "0.55"],
        "MARGINAL_GPU_UTIL_COEFF_STANDARD": ["0.65", "0.6"],
        "MARGINAL_GPU_UTIL_COEFF_PERFORMANCE": ["0.85", "0.9"],
    }
    env = {key: rng.choice(values) for key, values in choices.items() if rng.random() < 0.35}
    if rng.random() < 0.4:
        env["GPU_MODEL_CAPS_JSON"] = json.dumps(
            {
                model: {
                    "minCapWatts": whole(rng, rng.choice([100, 150, 200])),
                    "maxCapWatts": whole(rng, top),
                }
                for model, top in (
                    ("H100 SXM", 650),
                    ("L40S", 300),
                    ("MI300X", 700),
                    *((name, 320) for name in INVENTED_GPUS),
                )
                if rng.random() < 0.5
            }
        )
    return env
