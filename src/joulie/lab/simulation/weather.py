"""Air outside over a run: a day that is warmest at 15 h with noise that stays for hours, or what a file says."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np

from joulie.errors import InputError
from joulie.lab.model.jobs import Numbers
from joulie.lab.model.setup import WeatherSetup

WARMEST_HOUR = 15.0
NOISE_TAU_S = 6 * 3600.0  # after so long noise is forgotten to 1/e
NOISE_EVERY_S = 600.0  # a grid of its own: the weather of a seed does not depend on the plant's step
COLDEST_C, HOTTEST_C = -90.0, 60.0  # ever measured on Earth, and a little more
COLUMNS = ("time_s", "outside_c")
_STREAM = 30  # of chance, apart from those of the jobs


def outside_c(weather: WeatherSetup, seed: int, steps: int, step_s: float) -> Numbers:
    """The temperature in the middle of each of so many steps; a longer run begins with the same weather."""
    time_s: Numbers = (np.arange(steps, dtype=np.float64) + 0.5) * step_s
    if weather.file:
        points_s, points_c = _read(weather.file)
        return np.asarray(np.interp(time_s, points_s, points_c))
    hours = weather.start_hour + time_s / 3600.0
    day_c = weather.mean_c + weather.swing_c * np.cos((hours - WARMEST_HOUR) / 24.0 * 2.0 * np.pi)
    return np.asarray(day_c + weather.noise_c * _noise(seed, time_s))


def _noise(seed: int, time_s: Numbers) -> Numbers:
    """AR(1) of standard deviation 1 on its grid, linear between."""
    count = math.ceil(time_s[-1] / NOISE_EVERY_S) + 1 if time_s.size else 1
    chance = np.random.default_rng([seed, _STREAM]).standard_normal(count)
    kept = math.exp(-NOISE_EVERY_S / NOISE_TAU_S)
    added = math.sqrt(1.0 - kept * kept)
    values = [float(chance[0])]
    for draw in chance[1:].tolist():
        values.append(kept * values[-1] + added * draw)
    return np.asarray(np.interp(time_s, np.arange(count) * NOISE_EVERY_S, values))


def _read(file: str) -> tuple[Numbers, Numbers]:
    """Times and temperatures of a CSV file; InputError names file, line and field of what is wrong with it."""
    points: list[tuple[float, float]] = []
    try:
        with Path(file).open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.DictReader(lines, strict=True)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise InputError(f"{file}: line 1: no column {missing[0]}; needed are {', '.join(COLUMNS)}")
            for row in reader:
                where = f"{file}: line {reader.line_num}"
                at_s, at_c = (_number(row[name], f"{where}: {name}") for name in COLUMNS)
                if points and at_s <= points[-1][0]:
                    raise InputError(f"{where}: time_s: {at_s:g} does not come after {points[-1][0]:g}")
                if not COLDEST_C <= at_c <= HOTTEST_C:
                    raise InputError(f"{where}: outside_c: {at_c:g} °C is out of range ({COLDEST_C:g} … {HOTTEST_C:g})")
                points.append((at_s, at_c))
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file}: is not CSV text: {error}") from None
    if not points:
        raise InputError(f"{file}: holds no temperature")
    table = np.asarray(points)
    return table[:, 0], table[:, 1]


def _number(text: str | None, where: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        raise InputError(f"{where}: {text!r} is not a number") from None
    if not math.isfinite(value):
        raise InputError(f"{where}: {text!r} is not a finite number")
    return value
