"""How watts for the whole node become a limit for each CPU package.

The rules: docs/reference/behaviour.md, 'What 100 % means'.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from joulie.devices.interface import NotSupportedError

BELIEVABLE_LIMIT_W = 1000.0  # a limit of a kilowatt or more is a register left at its maximum, not a choice
MAX_LIMIT_W = 32_768.0  # the end of the widest register, which firmware writes for "no limit"
MIN_SHARE = 0.1  # of the maximum: below any package's idle power, so a cap there could only do harm
ROUNDING = 1e-3  # of the hardware's unit: whole watts stay whole however they were shared out
DRIFT_W = 1.0
DRIFT_SHARE = 0.01

Origin = Literal["hardware", "catalogue", "found"]


class PackageMax(NamedTuple):
    """The most that one package may draw, and where that number comes from."""

    watts: float
    origin: Origin


def package_max(hardware_w: float | None, catalogue_w: float | None, found_w: float | None) -> PackageMax | None:
    """The first that is known: from the hardware, the catalogue, a believable limit found before the first write."""
    if hardware_w is not None and hardware_w > 0:
        return PackageMax(hardware_w, "hardware")
    if catalogue_w is not None and catalogue_w > 0:
        return PackageMax(catalogue_w, "catalogue")
    if found_w is not None and 0 < found_w < BELIEVABLE_LIMIT_W:
        return PackageMax(found_w, "found")
    return None


def known_max_w(maximum: PackageMax | None, package: str) -> float:
    """The maximum, or the reason why there is no cap in watts without one."""
    if maximum is None:
        raise NotSupportedError(
            f"{package}: neither the hardware nor the catalogue says how much it may draw, so a cap in watts cannot be"
            " judged; add the CPU to HARDWARE_CATALOG_PATH"
        )
    return maximum.watts


def shares_w(target_w: float, maxima_w: Sequence[float]) -> list[float] | None:
    """The node's watts split in proportion to the packages' maxima; None: nothing needs to be limited."""
    total_w = math.fsum(maxima_w)
    if math.isnan(target_w) or target_w >= total_w:
        return None
    share = max(target_w / total_w, MIN_SHARE)
    return [share * max_w for max_w in maxima_w]


def limit(share_w: float, max_w: float, found: float | None, per_w: int) -> int:
    """A package's limit in the hardware's unit, never above what was found. A found limit of 0 was no limit."""
    ceiling = found if found is not None and found > 0 else max_w * per_w
    return math.floor(min(share_w * per_w, ceiling) + ROUNDING)


def drift_tolerance(value: float, per_w: int) -> float:
    """A limit read back that differs by no more is the same; hardware rounds, often to an eighth of a watt."""
    return max(DRIFT_W * per_w, DRIFT_SHARE * value)
