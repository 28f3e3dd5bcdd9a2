"""The replays that go with a live demo: beside it in a process of their own, by the command that anybody can run."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

import msgspec

from joulie.demo.looking import Options
from joulie.demo.outcome import Comparison
from joulie.errors import JoulieError

REPLAY_AFTER_S = 3.0  # so that the start has the machine to itself
REPLAY_WITHIN_S = 180.0
SEEDS = 3  # days that are compared, so that one lucky day is not the claim


class ReplaysFailedError(JoulieError):
    """The replays have nothing to say."""


def replay_command(options: Options, *more: str) -> list[str]:
    """What a person would type after `joulie` to get the same numbers, or with `more` some of them."""
    policy = ["--policy", options.policy] if options.policy else []
    return ["demo", "replay", "--seed", str(options.seed), *policy, *(more or ("--seeds", str(SEEDS)))]


async def replays_beside(options: Options) -> list[Comparison]:
    """The command that anybody can run, in a process of its own; ends with it when cancelled."""
    await asyncio.sleep(REPLAY_AFTER_S)
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "joulie",
        *replay_command(options),
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
    return msgspec.json.decode(out, type=list[Comparison])
