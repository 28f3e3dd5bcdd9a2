"""Student's confidence interval of a mean, and how likely a difference is by chance alone."""

from __future__ import annotations

import numpy as np

CONFIDENCE = 0.95


def mean_and_half_width(values: np.ndarray) -> tuple[float, float | None]:
    """The mean, and how far its interval reaches to either side; of one value it has none."""
    from scipy.stats import t

    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, None
    return mean, float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * _standard_error(values)


def p_value_of(differences: np.ndarray) -> float | None:
    """Of a difference at least as large by chance alone (two-sided paired t test)."""
    from scipy.stats import t

    if len(differences) < 2:
        return None
    mean, error = float(np.mean(differences)), _standard_error(differences)
    if error == 0:  # every seed says exactly the same
        return 1.0 if mean == 0 else 0.0
    return float(2 * t.sf(abs(mean) / error, len(differences) - 1))


def _standard_error(values: np.ndarray) -> float:
    # Equal values have none; their mean may be off by a rounding error, which must not pass for spread.
    return 0.0 if np.all(values == values[0]) else float(np.std(values, ddof=1) / np.sqrt(len(values)))
