from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.errors import InputError
from joulie.lab.model.setup import WeatherSetup
from joulie.lab.simulation.weather import NOISE_TAU_S, outside_c

HOUR_S = 3600.0
CALM = WeatherSetup(noise_c=0.0)


def test_a_calm_day_swings_around_its_mean_and_is_warmest_at_15_hours() -> None:
    day_c = outside_c(CALM, 1, 24, HOUR_S)  # the middle of each hour
    assert day_c.mean() == pytest.approx(14.0)
    assert outside_c(CALM, 1, 2 * 24 * 60, 60.0).max() == pytest.approx(20.0, abs=0.001)
    assert np.argmax(day_c) in {14, 15}
    assert np.argmin(day_c) in {2, 3}


def test_a_run_may_begin_at_any_hour() -> None:
    from_noon_c = outside_c(WeatherSetup(noise_c=0.0, start_hour=12.0), 1, 24, HOUR_S)
    assert from_noon_c == pytest.approx(np.roll(outside_c(CALM, 1, 24, HOUR_S), -12))


@given(st.integers(0, 2**31 - 1))
def test_the_same_seed_has_the_same_weather_and_another_seed_another(seed: int) -> None:
    weather = WeatherSetup()
    assert outside_c(weather, seed, 500, 60.0).tobytes() == outside_c(weather, seed, 500, 60.0).tobytes()
    assert not np.array_equal(outside_c(weather, seed, 500, 60.0), outside_c(weather, seed + 1, 500, 60.0))


def test_weather_depends_neither_on_the_step_nor_on_how_long_a_run_is() -> None:
    weather = WeatherSetup()
    long_c = outside_c(weather, 5, 5_000, 20.0)
    assert long_c[:100].tobytes() == outside_c(weather, 5, 100, 20.0).tobytes()
    fine_c = outside_c(weather, 5, 50_000, 2.0)
    assert fine_c.reshape(-1, 10).mean(axis=1) == pytest.approx(long_c, abs=0.01)


def test_noise_has_the_spread_that_is_asked_for_and_stays_for_hours() -> None:
    weather = WeatherSetup(mean_c=0.0, swing_c=0.0, noise_c=2.0)
    noise_c = np.concatenate([outside_c(weather, seed, 24 * 60, HOUR_S) for seed in range(20)])
    assert noise_c.mean() == pytest.approx(0.0, abs=0.2)
    assert noise_c.std() == pytest.approx(2.0, rel=0.05)
    later = int(NOISE_TAU_S / HOUR_S)
    assert np.corrcoef(noise_c[:-later], noise_c[later:])[0, 1] == pytest.approx(np.exp(-1), abs=0.05)


def test_no_steps_have_no_weather() -> None:
    assert outside_c(WeatherSetup(), 1, 0, 10.0).size == 0


def test_a_file_is_linear_between_its_points_and_held_at_the_ends(tmp_path: Path) -> None:
    file = tmp_path / "weather.csv"
    file.write_text("\ufeffplace,time_s,outside_c\nhere,10,5\nhere,20,15\n", encoding="utf-8")
    assert outside_c(WeatherSetup(file=str(file)), 1, 6, 5.0).tolist() == [5, 5, 7.5, 12.5, 15, 15]


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (b"time_s,outside\n0,1\n", "line 1: no column outside_c"),
        (b"", "line 1: no column time_s"),
        (b"time_s,outside_c\n", "holds no temperature"),
        (b"time_s,outside_c\n0,1\n5,\n", "line 3: outside_c: '' is not a number"),
        (b"time_s,outside_c\n0,1\n5\n", "line 3: outside_c: None is not a number"),
        (b"time_s,outside_c\n0,1\nsoon,1\n", "line 3: time_s: 'soon' is not a number"),
        (b"time_s,outside_c\n0,1\n5,nan\n", "line 3: outside_c: 'nan' is not a finite number"),
        (b"time_s,outside_c\n0,1\n5,2\n5,3\n", "line 4: time_s: 5 does not come after 5"),
        (b"time_s,outside_c\n0,288.15\n", "line 2: outside_c: 288.15 °C is out of range"),
        (b"time_s,outside_c\n0,\xff\n", "is not CSV text"),
    ],
)
def test_a_bad_file_is_refused_with_file_line_and_field(tmp_path: Path, content: bytes, wrong: str) -> None:
    file = tmp_path / "weather.csv"
    file.write_bytes(content)
    with pytest.raises(InputError) as refused:
        outside_c(WeatherSetup(file=str(file)), 1, 5, 10.0)
    assert str(refused.value).startswith(f"{file}: ")
    assert wrong in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv: cannot be read: No such file"):
        outside_c(WeatherSetup(file=str(tmp_path / "none.csv")), 1, 5, 10.0)
