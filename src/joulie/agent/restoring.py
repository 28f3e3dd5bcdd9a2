"""Putting everything back with the journal and the devices alone: no cluster, no target (`joulie agent restore`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from joulie.agent.actuator import Actuator
from joulie.agent.journal import Journal
from joulie.devices.interface import Capper, Knob


class Restored(NamedTuple):
    """One value of the journal: whether it is as it was found, and what to say of it."""

    knob: Knob
    done: bool
    message: str


async def restore_entries(
    journal: Journal, cappers: Sequence[Capper], only: Iterable[Knob] | None = None
) -> list[Restored]:
    """Put back the journal's entries, or some of them, whose backend is among `cappers`; a line for each."""
    journal.refresh()
    among = None if only is None else set(only)
    wanted = {entry.knob: entry for entry in journal.entries if among is None or entry.knob in among}
    failed: dict[Knob, str] = {}
    for capper in cappers:
        await capper.discover()  # some know only then what they may go back to
        failed |= {left.knob: str(left.error) for left in await Actuator(capper, journal).release()}
    results = []
    for knob, entry in wanted.items():
        if journal.entry(knob) is None:
            value = "no limit" if entry.found is None else f"{entry.found:.12g}"
            results.append(Restored(knob, True, f"restored to {value}"))
        else:
            reason = failed.get(knob, f"no backend {entry.backend or 'that has it'} is there")
            results.append(Restored(knob, False, f"not restored, it stays in the journal: {reason}"))
    return results
