"""Calls that may hang: bounded in time and in threads, and in order."""

import asyncio
import threading
import time

import pytest

from joulie.devices.gpu.bounded_calls import BoundedCalls
from joulie.devices.interface import DeviceFaultError

PATIENT_S = 30.0
SHORT_S = 0.2


def test_what_the_call_returns_or_raises_comes_back() -> None:
    calls = BoundedCalls("a library", PATIENT_S)

    def fails() -> int:
        raise TimeoutError("its own")

    assert asyncio.run(calls(lambda: 42)) == 42
    with pytest.raises(TimeoutError, match="its own"):
        asyncio.run(calls(fails))


def test_calls_do_not_overlap_and_do_not_stop_the_loop() -> None:
    calls = BoundedCalls("a library", PATIENT_S)
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.02)
        inside.pop()

    async def all_at_once() -> int:
        turns = 0
        work_to_do = asyncio.gather(*(calls(work) for _ in range(8)))
        while not work_to_do.done():
            turns += 1
            await asyncio.sleep(0.001)
        return turns

    assert asyncio.run(all_at_once()) > 8
    assert most == [1] * 8


def test_a_hung_call_is_given_up_and_further_ones_fail_at_once_until_it_returns() -> None:
    calls = BoundedCalls("a library", SHORT_S)
    release = threading.Event()
    before = threading.active_count()

    async def play() -> None:
        with pytest.raises(DeviceFaultError, match="a library: a call did not return"):
            await calls(release.wait)
        for _ in range(50):
            with pytest.raises(DeviceFaultError, match="still hangs"):
                await calls(lambda: 1)
        assert threading.active_count() == before + 1
        release.set()
        await _until_threads(before)
        assert await calls(lambda: 1) == 1

    asyncio.run(play())


def test_a_cancelled_caller_leaves_the_order_of_calls_intact() -> None:
    calls = BoundedCalls("a library", PATIENT_S)
    release = threading.Event()
    done: list[str] = []

    def first() -> None:
        release.wait()
        done.append("first")

    async def play() -> None:
        caller = asyncio.create_task(calls(first))
        await asyncio.sleep(0.01)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        following = asyncio.create_task(calls(lambda: done.append("second")))
        await asyncio.sleep(0.01)
        assert done == []
        release.set()
        await following
        assert done == ["first", "second"]

    asyncio.run(play())


def test_a_call_that_returns_after_its_loop_has_ended_disturbs_nothing() -> None:
    calls = BoundedCalls("a library", SHORT_S)
    release = threading.Event()
    before = threading.active_count()
    with pytest.raises(DeviceFaultError):
        asyncio.run(calls(release.wait))
    release.set()
    asyncio.run(_until_threads(before))
    assert asyncio.run(calls(lambda: 1)) == 1


async def _until_threads(count: int) -> None:
    deadline = time.monotonic() + PATIENT_S
    while threading.active_count() > count:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)
