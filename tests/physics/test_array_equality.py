"""One formula for single numbers and for arrays: the same bits either way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from joulie.control.scoring import Prepared, ScoreColumns, cluster_facts, prepare, score
from joulie.model.snapshot import WorkloadClass
from joulie.physics import marginal, power, twin
from joulie.physics.cooling import LinearCoolingModel
from joulie.settings import MarginalSettings, TwinSettings

Numbers = NDArray[np.float64]

watts = st.floats(0, 1e5)
pct = st.floats(0, 100)
degrees = st.floats(-60, 80)
counts = st.floats(0, 2000)
anything = st.floats(allow_nan=True, allow_infinity=True)

FORMULAS: dict[str, tuple[Callable[..., Any], tuple[st.SearchStrategy[float], ...]]] = {
    "capped power": (power.capped_power_w, (watts, pct)),
    "static power": (power.static_power_w, (watts, watts, watts)),
    "headroom": (twin.headroom_score, (pct, pct, pct)),
    "clamped score": (twin.clamp_score, (anything,)),
    "PSU stress": (lambda total_w: twin.psu_stress_score(total_w, 50_000.0), (watts,)),
    "hardware density": (twin.hardware_density_score, (counts, counts)),
    "cooling stress": (LinearCoolingModel(TwinSettings()).stress, (watts, degrees)),
    "inverse": (marginal.inverse, (counts,)),
    "share": (marginal.share, (counts, st.floats(0, 1))),
    "marginal power": (marginal.marginal_power_w, (pct, pct, watts, watts)),
    "marginal power without GPU": (lambda c, w: marginal.marginal_power_w(c, None, w, w), (pct, watts)),
}


def bits(values: Any) -> list[bytes]:
    return [value.tobytes() for value in np.atleast_1d(np.asarray(values, dtype=np.float64))]


@pytest.mark.parametrize("name", FORMULAS)
@given(data=st.data())
def test_a_formula_gives_an_array_what_it_gives_each_element(name: str, data: st.DataObject) -> None:
    formula, arguments = FORMULAS[name]
    rows = data.draw(st.lists(st.tuples(*arguments), min_size=1, max_size=20))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    one_by_one = [formula(*(np.float64(value) for value in row)) for row in rows]
    assert bits(formula(*columns)) == [bit for result in one_by_one for bit in bits(result)]


@st.composite
def score_columns(draw: st.DrawFn) -> ScoreColumns:
    size = draw(st.integers(1, 12))

    def column(values: st.SearchStrategy[Any], dtype: Any = np.float64) -> NDArray[Any]:
        return np.array(draw(st.lists(values, min_size=size, max_size=size)), dtype=dtype)

    has_power = column(st.booleans(), np.bool_)
    return ScoreColumns(
        fresh=column(st.booleans(), np.bool_),
        class_code=column(st.integers(0, 3), np.int8),
        has_power=has_power,
        capped_w=np.where(has_power, column(st.floats(1, 1e4)), 0.0),
        measured_w=np.where(has_power, column(watts), 0.0),
        recent_w=column(watts),
        expected_w=column(watts),
        predicted_headroom=column(pct),
        cooling_stress=column(pct),
        trend_w_per_min=column(st.floats(-1000, 1000)),
        pue=column(st.floats(0.5, 3)),
        cpu_max_w=column(watts),
        gpu_max_w=column(watts),
        inverse_cores=column(st.floats(0, 1)),
        inverse_gpus=column(st.floats(0, 1)),
    )


def row_of(prepared: Prepared, row: int) -> Prepared:
    def cut(part: Any) -> Any:
        return part[row : row + 1] if isinstance(part, np.ndarray) else part

    return Prepared(**{name: cut(getattr(prepared, name)) for name in prepared.__struct_fields__})


def rearranged(columns: ScoreColumns, order: list[int]) -> ScoreColumns:
    return ScoreColumns(**{name: getattr(columns, name)[order] for name in columns.__struct_fields__})


classes: st.SearchStrategy[WorkloadClass] = st.sampled_from(["standard", "performance"])


@given(score_columns(), counts, st.sampled_from([0.0, 1.0, 8.0]), classes)
def test_all_nodes_at_once_score_what_each_scores_alone(
    columns: ScoreColumns, cores: float, gpus: float, workload_class: WorkloadClass
) -> None:
    prepared = prepare(columns, MarginalSettings())
    together = score(prepared, cores, gpus, workload_class)
    for row in range(len(columns.fresh)):
        alone = score(row_of(prepared, row), cores, gpus, workload_class)
        assert bits(together.score[row]) == bits(alone.score)
        assert bits(together.headroom[row]) == bits(alone.headroom)
        assert bits(together.marginal_w[row]) == bits(alone.marginal_w)


@given(score_columns(), st.data())
def test_preparing_nodes_in_another_order_gives_the_same_bits(columns: ScoreColumns, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(columns.fresh))))
    here, there = prepare(columns, MarginalSettings()), prepare(rearranged(columns, order), MarginalSettings())
    for name in here.__struct_fields__:
        mine, other = getattr(here, name), getattr(there, name)
        if name == "terms":
            mine, other = np.array(mine).T, np.array(other).T
        assert bits(mine[order] if isinstance(mine, np.ndarray) else mine) == bits(other)


@given(score_columns())
def test_pressure_is_a_percentage(columns: ScoreColumns) -> None:
    assert 0 <= cluster_facts(columns).performance_pressure <= 100
