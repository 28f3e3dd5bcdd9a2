"""The limit in force: windows in their time zones, signals, and what bad input makes of them."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.control.budget.limits.in_force import (
    ForecastValue,
    SignalReading,
    limit_in_force,
    lowest_limit_w,
    signal_limit_w,
)
from joulie.model.api.budget import BudgetSignal, BudgetWindow, Forecast, PowerBudgetSpec, SignalPoint

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = {"Europe/Berlin": BERLIN}
PEAK = BudgetWindow("17:00", "21:00", 8_000, ["Mon", "Tue", "Wed", "Thu", "Fri"], "Europe/Berlin")
NIGHT = BudgetWindow("22:00", "06:00", 5_000)
PRICE = [SignalPoint(100, 12_000), SignalPoint(400, 8_000)]


def at(text: str, zone: ZoneInfo = BERLIN) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def limit(spec: PowerBudgetSpec, now_s: float, signal: SignalReading | None = None) -> tuple[float, float | None]:
    found = limit_in_force(spec, spec.watts, now_s, ZONES, signal)
    return found.watts, found.until_s


@pytest.mark.parametrize(
    ("moment", "watts"),
    [
        ("2026-11-18 16:58", 12_000),
        ("2026-11-18 16:59", 8_000),  # a minute early
        ("2026-11-18 20:59", 8_000),
        ("2026-11-18 21:00:59", 8_000),  # a minute late
        ("2026-11-18 21:01", 12_000),
        ("2026-11-21 18:00", 12_000),  # a Saturday
        ("2026-07-15 18:00", 8_000),  # by the clock on the wall, in summer too
    ],
)
def test_a_window_lowers_the_limit_early_and_raises_it_late(moment: str, watts: float) -> None:
    assert limit(PowerBudgetSpec(12_000, windows=[PEAK]), at(moment))[0] == watts


def test_the_next_change_is_known() -> None:
    spec = PowerBudgetSpec(12_000, windows=[PEAK])
    assert limit(spec, at("2026-11-18 12:00"))[1] == at("2026-11-18 16:59")
    assert limit(spec, at("2026-11-18 18:00"))[1] == at("2026-11-18 21:01")
    assert limit(spec, at("2026-11-20 22:00"))[1] == at("2026-11-23 16:59")  # Friday night: Monday
    assert limit(PowerBudgetSpec(12_000), 0.0) == (12_000, None)


def test_a_window_may_last_over_midnight_and_over_a_change_of_the_clock() -> None:
    spec = PowerBudgetSpec(12_000, windows=[NIGHT])
    utc = ZoneInfo("UTC")
    assert [limit(spec, at(f"2026-11-18 {hour}", utc))[0] for hour in ("21:58", "23:00", "05:59", "06:02")] == [
        *(12_000, 5_000, 5_000, 12_000)
    ]
    local = PowerBudgetSpec(12_000, windows=[BudgetWindow("22:00", "06:00", 5_000, None, "Europe/Berlin")])
    assert limit(local, at("2026-10-25 05:30"))[0] == 5_000  # the night of 25 hours
    assert limit(local, at("2026-10-25 06:02"))[0] == 12_000


def test_of_overlapping_windows_the_lowest_holds() -> None:
    spec = PowerBudgetSpec(12_000, windows=[PEAK, BudgetWindow("16:00", "18:00", 9_000, None, "Europe/Berlin")])
    assert [limit(spec, at(f"2026-11-18 {hour}"))[0] for hour in ("16:30", "17:30", "19:00")] == [9_000, 8_000, 8_000]
    assert lowest_limit_w(spec, 12_000) == 8_000


def test_a_window_in_an_unknown_time_zone_holds_at_all_times() -> None:
    spec = PowerBudgetSpec(12_000, windows=[BudgetWindow("17:00", "18:00", 8_000, None, "Europe/Berln")])
    found = limit_in_force(spec, 12_000, at("2026-11-18 03:00"), ZONES)
    assert (found.watts, found.until_s) == (8_000, None)
    assert "Europe/Berln" in found.why


def test_a_signal_moves_the_limit_along_straight_lines() -> None:
    signal = BudgetSignal(PRICE, query="price")
    assert [signal_limit_w(signal, value) for value in (-5, 100, 250, 400, 1e9)] == [
        12_000,
        12_000,
        10_000,
        8_000,
        8_000,
    ]
    spec = PowerBudgetSpec(11_000, signal=signal)
    assert limit(spec, 0.0, SignalReading(100.0))[0] == 11_000
    assert limit(spec, 0.0, SignalReading(400.0))[0] == 8_000


@pytest.mark.parametrize("lost", [None, SignalReading(), SignalReading(float("nan")), SignalReading(float("inf"))])
def test_a_lost_or_absurd_signal_means_its_lowest_limit(lost: SignalReading | None) -> None:
    assert limit(PowerBudgetSpec(12_000, signal=BudgetSignal(PRICE, query="price")), 0.0, lost)[0] == 8_000


def test_a_forecast_lowers_the_limit_before_its_hour_and_its_end_means_its_lowest() -> None:
    spec = PowerBudgetSpec(12_000, signal=BudgetSignal(PRICE, forecast=Forecast("ops/price", "day")))
    reading = SignalReading(
        forecast=[ForecastValue(0, 3600, 100), ForecastValue(3600, 7200, 400), ForecastValue(7200, 9000, 100)]
    )
    assert limit(spec, 1_000, reading) == (12_000, 3540)
    assert [limit(spec, now_s, reading)[0] for now_s in (3_541, 7_259, 7_261, 9_001)] == [8_000, 8_000, 12_000, 8_000]
    assert [limit(spec, now_s, reading)[0] for now_s in (8_939, 8_941)] == [12_000, 8_000]  # its end lowers early, too


def test_a_signal_without_a_source_or_with_two_counts_as_its_worst() -> None:
    for signal in (BudgetSignal(PRICE), BudgetSignal(PRICE, query="x", forecast=Forecast("a/b", "c"))):
        assert limit(PowerBudgetSpec(12_000, signal=signal), 0.0, SignalReading(100.0))[0] == 8_000


clocks = st.times().map(lambda time: f"{time:%H:%M}")
windows = st.builds(
    BudgetWindow, clocks, clocks, st.floats(1, 1e6), st.none(), st.sampled_from(["Europe/Berlin", "UTC", "?"])
)


@given(st.lists(windows, max_size=4), st.floats(0, 4e9), st.floats(1, 1e6))
def test_no_window_ever_raises_a_limit_and_none_goes_below_the_lowest(
    given_windows: list[BudgetWindow], now_s: float, watts: float
) -> None:
    spec = PowerBudgetSpec(watts, windows=given_windows)
    found = limit_in_force(spec, watts, now_s, ZONES)
    assert lowest_limit_w(spec, watts) <= found.watts <= watts
    assert found.until_s is None or found.until_s > now_s


@pytest.mark.parametrize(
    "spec",
    [
        {"watts": 0},
        {"watts": -5},
        {"watts": float("nan")},
        {"watts": float("inf")},
        {"watts": "12kW"},
        {},
        {"watts": 1, "share": 0},
        {"watts": 1, "failoverShare": 1.5},
        {"watts": 1, "restartReserve": 0.5},
        {"watts": 1, "restWattsPerNode": -1},
        {"watts": 1, "mode": "hope"},
        {"watts": 1, "windows": [{"from": "5pm", "to": "21:00", "watts": 1}]},
        {"watts": 1, "windows": [{"from": "17:00", "to": "24:00", "watts": 1}]},
        {"watts": 1, "windows": [{"from": "17:00", "to": "21:00", "watts": 0}]},
        {"watts": 1, "windows": [{"from": "17:00", "to": "21:00", "watts": 1, "days": ["Monday"]}]},
        {"watts": 1, "signal": {"query": "x", "at": []}},
        {"watts": 1, "signal": {"query": "x", "at": [{"value": float("nan"), "watts": 1}]}},
        {"watts": 1, "groups": [{"watts": 5}]},
    ],
    ids=str,
)
def test_what_cannot_be_a_budget_is_refused(spec: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(spec, PowerBudgetSpec)
