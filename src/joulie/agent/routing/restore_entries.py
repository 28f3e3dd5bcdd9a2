"""Restoring what the journal holds, device by device: for routes that are gone, and for `joulie agent restore`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from joulie.agent.enforcement.actuator import Actuator
from joulie.agent.restore.journal import Journal, JournalEntry
from joulie.devices.interface import Capper, Knob

if TYPE_CHECKING:
    from joulie.devices.http.client import HttpClient


class Restored(NamedTuple):
    """One value of the journal: whether it was restored, and a line about it."""

    knob: Knob
    done: bool
    message: str


def http_cappers(
    client: HttpClient, node: str, entries: Iterable[JournalEntry], timeout_s: float = 5.0
) -> list[Capper]:
    """The very endpoints that the entries name, whatever the node is routed to now."""
    from joulie.devices.http.capper import HTTP_CAPPERS  # late: a machine's own devices need no network
    from joulie.devices.http.client import HttpNode

    by_attribute = {capper.attribute: capper for capper in HTTP_CAPPERS}
    at: dict[tuple[str, str], HttpNode] = {}
    cappers: list[Capper] = []
    for entry in entries:
        kind = by_attribute.get(entry.attribute)
        if not entry.endpoint or kind is None:
            continue
        place = at.setdefault(
            (entry.endpoint, entry.telemetry),
            HttpNode(client, entry.endpoint, telemetry_url=entry.telemetry, timeout_s=timeout_s),
        )
        cappers.append(kind(place, node))
    return cappers


async def restore_entries(
    journal: Journal, cappers: Sequence[Capper], only: Iterable[Knob] | None = None
) -> list[Restored]:
    """Restore the journal's entries, or some of them, whose backend is among `cappers`; a line for each."""
    journal.refresh()
    among = None if only is None else set(only)
    wanted = {entry.knob: entry for entry in journal.entries if among is None or entry.knob in among}
    failed: dict[Knob, str] = {}
    for capper in cappers:
        await capper.discover()  # some know only then what they may restore
        left = await Actuator(capper, journal).release(journal_only=True)
        failed |= {each.knob: str(each.error) for each in left}
    results = []
    for knob, entry in wanted.items():
        if journal.entry(knob) is None:
            value = "no limit" if entry.found is None else f"{entry.found:.12g}"
            results.append(Restored(knob, True, f"restored to {value}"))
        else:
            reason = failed.get(knob, f"no backend {entry.backend or 'that has it'} is there")
            results.append(Restored(knob, False, f"not restored, it stays in the journal: {reason}"))
    return results
