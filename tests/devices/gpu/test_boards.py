"""What holds for any board and any wish: limits stay in the range, and never above what was there before."""

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.devices.gpu.boards import Board, BoardScan, checked, describe, limit_for
from joulie.devices.gpu.capper import GpuCapper
from joulie.devices.interface import Knob, NotSupportedError, Value

MW = 1000
limits = st.integers(MW, 2_000_000)
wishes = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from(
    [0.0, -1.0, 1e300, math.nan, math.inf, -math.inf]
)


@st.composite
def boards(draw: st.DrawFn, device: str = "GPU-0") -> Board:
    highest = draw(limits)
    lowest = draw(st.none() | st.integers(MW, highest))
    default = draw(st.none() | st.integers(lowest or MW, highest))
    return checked(Board(device, draw(st.none() | st.sampled_from("AB")), lowest, highest, default), 1000)


@pytest.mark.parametrize("told", [0, "N/A", None, 2**16 - 1, 2**32 - 1, 2**64 - 1, -1, 2.5])
def test_limits_that_mean_not_available_are_unknown_and_never_0(told: object) -> None:
    units_per_w = 1 if told == 2**16 - 1 else 1000
    board = checked(Board("GPU-0", "A", told, 300 * units_per_w, told, told), units_per_w)  # type: ignore[arg-type]
    assert (board.lowest, board.default, board.current) == (None, None, None)
    assert board.no_control is None


class OnlyLooks:
    """A library of which only the scan is asked."""

    name = vendor = "any"
    attribute = "power_limit_mw"
    units_per_w = MW

    def __init__(self, *seen: Board) -> None:
        self._seen = seen

    def scan(self) -> BoardScan:
        return BoardScan(self._seen)

    def limit(self, device: str) -> int:
        raise AssertionError(device)

    def set_limit(self, device: str, limit: int) -> None:
        raise AssertionError(device, limit)

    def power_w(self, device: str) -> float:
        raise AssertionError(device)

    def close(self) -> None:
        pass


@given(boards(), wishes, limits)
def test_a_limit_is_inside_the_range_and_never_above_what_was_found_or_the_default(
    board: Board, wish: float, found: int
) -> None:
    limit = limit_for(board, wish, found, MW)
    assert limit is not None
    assert board.highest is not None
    lowest = board.lowest or MW
    assert lowest <= limit <= board.highest
    assert limit <= max(min(found, board.default or board.highest), lowest)


@given(boards(), wishes, limits)
def test_a_wish_inside_the_range_is_granted(board: Board, wish: float, found: int) -> None:
    top = min(found, board.default or found, board.highest or found)
    limit = limit_for(board, wish, found, MW)
    if (board.lowest or MW) <= wish <= top:
        assert limit == math.floor(wish)


@given(boards(), limits)
def test_putting_back_is_repeatable_and_what_no_wish_and_an_endless_one_mean(board: Board, found: int) -> None:
    once = limit_for(board, math.inf, found, MW)
    assert once is not None
    assert limit_for(board, math.inf, once, MW) == once
    assert limit_for(board, math.nan, found, MW) == once
    if (board.lowest or MW) <= found <= (board.default or board.highest or 0):
        assert once == found


@given(wishes, limits)
def test_a_board_that_was_never_seen_is_left_as_found(wish: float, found: int) -> None:
    assert limit_for(None, wish, found, MW) == found


@given(st.none() | st.sampled_from([math.nan, math.inf, -math.inf, 0, -7]), wishes)
def test_a_journal_that_says_nonsense_never_lifts_a_limit_above_the_default(found: Value, wish: float) -> None:
    board = Board("GPU-0", None, 100_000, 300_000, 250_000)
    limit = limit_for(board, wish, found, MW)
    assert limit is not None
    assert 100_000 <= limit <= 250_000
    assert limit_for(None, wish, found, MW) is None


@given(st.floats(1, 2000), limits)
def test_settings_are_watts_of_each_board_and_only_for_knobs_of_this_library(target_w: float, found: int) -> None:
    gpus = GpuCapper(OnlyLooks(Board("GPU-0", None, 1, 2_000_000, None), Board("GPU-1", None, 1, 2_000_000, None)))
    knobs = asyncio.run(gpus.knobs())
    others = {Knob("/sys/devices/cpu", "constraint_0_power_limit_uw"): 7}
    settings = gpus.settings(target_w, {knobs[1]: found, knobs[0]: found} | others)
    assert [setting.knob for setting in settings] == knobs
    assert {setting.value for setting in settings} == {min(math.floor(target_w * MW), found)}
    assert {setting.tolerance for setting in settings} == {1.0 * MW}


@given(st.lists(boards(), max_size=6))
def test_a_common_range_is_allowed_by_every_board(some: list[Board]) -> None:
    seen = describe("nvidia", "nvidia", MW, BoardScan(tuple(some)))
    assert (seen.present, seen.count) == (bool(some), len(some))
    if seen.max_w is not None:
        assert all(board.highest is not None and seen.max_w <= board.highest / MW for board in some)
        assert seen.min_w is None or seen.min_w <= seen.max_w
    if seen.min_w is not None:
        assert all(board.lowest is None or board.lowest / MW <= seen.min_w for board in some)
    if len({(board.model, board.lowest, board.highest) for board in some}) > 1:
        assert seen.quality == "heuristic"
    assert 0 not in (seen.min_w, seen.max_w, seen.default_w, seen.current_w)


def test_one_board_that_cannot_be_capped_is_a_warning_and_all_are_the_reason() -> None:
    free = Board("GPU-0", "A", 1, 2, 2)
    stuck = Board("GPU-1", "A", no_control=NotSupportedError("GPU-1 cannot"))
    some = describe("nvidia", "nvidia", MW, BoardScan((free, stuck)))
    assert some.no_control is None
    assert any("GPU-1 cannot" in warning for warning in some.warnings)
    assert describe("nvidia", "nvidia", MW, BoardScan((stuck, stuck))).no_control == "GPU-1 cannot"
