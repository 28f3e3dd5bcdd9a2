"""What is prepared again for changed rows alone is what `prepare` makes of all rows, bit by bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec.structs import asdict

from joulie.control.exact_sum import exact_sum
from joulie.control.preparing import MOST_PARTS, Preparation, RunningSum
from joulie.control.scoring import BURST_W_PER_MIN, CLASS_CODES, Prepared, ScoreColumns, prepare
from joulie.settings import MarginalSettings

ROWS = 200
SETTINGS = MarginalSettings()


def some_columns(chance: np.random.Generator) -> ScoreColumns:
    """Of every sort: stale twins, unknown power, all classes, watts from nothing to megawatts."""
    capped_w = chance.uniform(0.0, 5_000.0, ROWS)
    has_gpus = chance.random(ROWS) < 0.5
    surges = 700.0 * (chance.random(ROWS) < 0.003)  # one makes a burst of the whole cluster
    return ScoreColumns(
        fresh=chance.random(ROWS) < 0.9,
        class_code=chance.choice(list(CLASS_CODES.values()), ROWS).astype(np.int8),
        has_power=chance.random(ROWS) < 0.9,
        capped_w=capped_w,
        measured_w=capped_w * chance.uniform(0.0, 1.5, ROWS),
        recent_w=chance.uniform(0.0, 300.0, ROWS) * (chance.random(ROWS) < 0.3),
        expected_w=chance.uniform(0.0, 300.0, ROWS) * (chance.random(ROWS) < 0.3),
        predicted_headroom=chance.uniform(0.0, 100.0, ROWS),
        cooling_stress=chance.uniform(0.0, 100.0, ROWS),
        trend_w_per_min=chance.normal(0.0, 10.0 ** chance.integers(-12, 2, ROWS)) + surges,
        pue=chance.uniform(0.5, 2.0, ROWS),
        cpu_max_w=chance.uniform(100.0, 1_000.0, ROWS),
        gpu_max_w=np.where(has_gpus, 5_600.0, 0.0),
        inverse_cores=chance.uniform(0.0, 1.0, ROWS),
        inverse_gpus=np.where(has_gpus, 0.125, 0.0),
    )


def assert_same(ours: Prepared, wanted: Prepared) -> None:
    for name, column in asdict(wanted).items():
        assert np.asarray(getattr(ours, name)).tobytes() == np.asarray(column).tobytes(), name


@pytest.mark.parametrize("seed", range(5))
def test_changed_rows_are_prepared_as_all_rows_would_be(seed: int) -> None:
    chance = np.random.default_rng(seed)
    columns = some_columns(chance)
    kept = Preparation(columns, SETTINGS)
    bursts = set()
    for _ in range(300):
        rows = chance.choice(ROWS, chance.integers(1, 8), replace=False)
        news = some_columns(chance)
        only_load = chance.random() < 0.3
        for name in ("recent_w", "expected_w") if only_load else ScoreColumns.__struct_fields__:
            getattr(columns, name)[rows] = getattr(news, name)[rows]
        before = kept.prepared
        found = kept.load(rows) if only_load else kept.change(rows)
        assert found is not before  # whoever has computed something ahead sees that it no longer holds
        assert_same(found, prepare(columns, SETTINGS))
        bursts.add(abs(found.cluster_trend_w_per_min) > BURST_W_PER_MIN)
    assert bursts == {True, False}


def test_a_running_sum_stays_exact_however_often_something_changes() -> None:
    chance = np.random.default_rng(1)
    values = chance.normal(0.0, 1.0, 50) * 10.0 ** chance.integers(-15, 15, 50)
    running, plain = RunningSum(values.copy()), values.copy()
    for _ in range(MOST_PARTS * 2):
        rows = chance.choice(50, 3, replace=False)
        plain[rows] = chance.normal(0.0, 1.0, 3) * 10.0 ** chance.integers(-15, 15, 3)
        running.change(rows, plain[rows])
        assert running.total() == exact_sum(plain) == math.fsum(plain.tolist())
