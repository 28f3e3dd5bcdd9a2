"""The replays that accompany a live demo: in a process of their own, by the same command that users run."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import NamedTuple

import msgspec

from joulie.demo.live.interface import DemoOptions
from joulie.demo.replay.feed_cut import FeedCutComparison
from joulie.demo.replay.results import ReplayComparison
from joulie.demo.scenario.day import FEED_CUT
from joulie.errors import JoulieError

REPLAY_AFTER_S = 3.0  # so that start-up has the machine to itself
REPLAY_WITHIN_S = 180.0
SEEDS = 3  # days that are compared, so that the claim does not rest on one lucky day


class ReplaysFailedError(JoulieError):
    """The replays gave no result."""


def replay_command(options: DemoOptions, *more: str) -> list[str]:
    """What a user would type after `joulie` to get the same numbers, or with `more` some of them."""
    policy = ["--policy", options.policy] if options.policy else []
    return ["demo", "replay", "--seed", str(options.seed), *policy, *(more or ("--seeds", str(SEEDS)))]


class Replays(NamedTuple):
    """What was replayed beside a live demo."""

    comparisons: list[ReplayComparison]
    feed_cut: FeedCutComparison


async def run_replays(options: DemoOptions) -> Replays:
    """Run the commands one after the other, each in a process of its own; cancelling ends it."""
    await asyncio.sleep(REPLAY_AFTER_S)
    compared = await _printed(replay_command(options))
    cut = await _printed(replay_command(options, "--scene", FEED_CUT.name))
    return Replays(
        msgspec.json.decode(compared, type=list[ReplayComparison]), msgspec.json.decode(cut, type=FeedCutComparison)
    )


async def _printed(command: list[str]) -> bytes:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "joulie",
        *command,
        "-o",
        "json",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C is for the demo, which then waits for it
    )
    try:
        async with asyncio.timeout(REPLAY_WITHIN_S):
            out, err = await child.communicate()
    except TimeoutError:
        raise ReplaysFailedError(f"they took longer than {REPLAY_WITHIN_S:.0f} s") from None
    finally:
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()
    if child.returncode:
        raise ReplaysFailedError(err.decode(errors="replace").strip() or f"exit code {child.returncode}")
    return out
