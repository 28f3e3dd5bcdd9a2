"""GPU boards of any vendor: their ranges, what a target means for each, and what is reported of them.

Limits are whole numbers in the unit of the board's library (milliwatts, microwatts); `units_per_w` says which.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from joulie.devices.interface import BadReadingError, DeviceError, Discovered, NotSupportedError, Value

TOLERANCE_W = 1.0  # amdgpu keeps whole watts
BELIEVABLE_LIMIT_W = 20_000.0


class Board(Struct, frozen=True):
    """One physical board, as its library describes it. What is not known is None."""

    device: str  # UUID or PCI address
    model: str | None = None
    lowest: int | None = None
    highest: int | None = None
    default: int | None = None
    current: int | None = None
    no_control: DeviceError | None = None
    no_telemetry: str | None = None


class BoardScan(NamedTuple):
    """What a library sees now: the boards it can talk about, and a line for each that it cannot."""

    boards: tuple[Board, ...]
    warnings: tuple[str, ...] = ()


def known_limit(told: object, units_per_w: int) -> int | None:
    """A limit as a library reports it; None for 0, `N/A` and a register's largest number, which all mean unknown."""
    return told if isinstance(told, int) and 0 < told <= BELIEVABLE_LIMIT_W * units_per_w else None


def checked(board: Board, units_per_w: int) -> Board:
    """The same board without limits that mean "not known", and not to be capped where its range makes no sense."""
    lowest, highest = known_limit(board.lowest, units_per_w), known_limit(board.highest, units_per_w)
    refusal = board.no_control
    if refusal is None and highest is None:
        refusal = NotSupportedError(f"{board.device} has no power limit that can be set")
    elif refusal is None and highest is not None and (lowest or 0) > highest:
        refusal = BadReadingError(f"{board.device} reports a range of power limits from {lowest} to {highest}")
    if isinstance(refusal, BadReadingError):
        lowest = highest = None
    return replace(
        board,
        lowest=lowest,
        highest=highest,
        default=known_limit(board.default, units_per_w),
        current=known_limit(board.current, units_per_w),
        no_control=refusal,
    )


def limit_for(board: Board | None, wanted: float, found: Value, units_per_w: int) -> int | None:
    """The limit to write: what is wanted, never above what was found nor the default, always inside the range.

    NaN asks for nothing. Where the enforced limit was found below the range (another limiter holds the board), the
    range's low end is the nearest that can be written. A board that was never seen is left as found. Where the hardware
    states no minimum it is 1 W: zero means "leave it" or "default" to some drivers.
    """
    known = (found, board.default, board.highest) if board else (found,)
    tops = [float(top) for top in known if top is not None and math.isfinite(top) and top > 0]
    if not tops:
        return None
    top = min(tops)
    if board is None or board.highest is None:
        return math.floor(top)
    limit = top if math.isnan(wanted) else min(wanted, top)
    return math.floor(max(limit, board.lowest or units_per_w))


def describe(
    backend: str, vendor: str, units_per_w: int, scan: BoardScan, failure: DeviceError | None = None
) -> Discovered:
    """What is reported of the boards; `failure` says why none can be controlled, or even seen."""
    boards, warnings = scan.boards, list(scan.warnings)
    if not boards:
        reason = str(failure) if failure else f"no {vendor} GPU was found"
        return Discovered(
            "gpu", backend, False, no_control=reason, no_telemetry=reason, quality="unavailable", warnings=scan.warnings
        )
    models = Counter(board.model for board in boards if board.model)
    ranges = {(board.lowest, board.highest) for board in boards}
    lowest = max(_known(board.lowest for board in boards), default=None)
    highest = min(_known(board.highest for board in boards), default=None)
    if len(models) > 1 or len(ranges) > 1:
        named = ", ".join(f"{count} × {model}" for model, count in sorted(models.items()))
        warnings.append(f"boards differ ({named or 'unnamed'}): the cap range is what all of them allow")
    if lowest is not None and highest is not None and lowest > highest:
        warnings.append("there is no cap that all boards allow: each is held within its own range")
        lowest = highest = None
    blocked = [board for board in boards if board.no_control]
    if failure is None and len(blocked) == len(boards):
        failure = blocked[0].no_control
    else:
        warnings += [f"cannot be capped: {board.no_control}" for board in blocked]
    deaf = [board.no_telemetry for board in boards if board.no_telemetry]
    alike = len({board.model for board in boards}) == len(models) == len(ranges) == 1
    certain = alike and lowest is not None and not warnings

    def watts(limit: int | None) -> float | None:
        return None if limit is None else limit / units_per_w

    return Discovered(
        "gpu",
        backend,
        True,
        count=len(boards),
        raw_model=min(models, key=lambda model: (-models[model], model), default=None),
        vendor=vendor,
        min_w=watts(lowest),
        max_w=watts(highest),
        default_w=watts(min(_known(board.default for board in boards), default=None)),
        current_w=watts(min(_known(board.current for board in boards), default=None)),
        no_control=str(failure) if failure else None,
        no_telemetry=deaf[0] if deaf else None,
        quality="exact" if certain else "heuristic",
        warnings=tuple(warnings),
    )


def _known(limits: Iterable[int | None]) -> list[int]:
    return [limit for limit in limits if limit is not None]


def with_own_limit(boards: Sequence[Board]) -> BoardScan:
    """Leave out what only looks like a board: a second die, a partition, the display unit of a CPU.

    They have no limit of their own while the board that they belong to, or a real one beside them, has. Where nothing
    has a limit, all of them stay and are reported as not controllable.
    """
    lesser = [board for board in boards if isinstance(board.no_control, NotSupportedError)]
    if len(lesser) == len(boards):
        return BoardScan(tuple(boards))
    real = tuple(board for board in boards if board not in lesser)
    return BoardScan(
        real, tuple(f"{board.device} has no power limit of its own: not counted as a board" for board in lesser)
    )
