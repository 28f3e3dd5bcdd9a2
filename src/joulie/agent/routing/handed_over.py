"""Journals of nodes that another shard looks after now: its agent does not know them, so this one watches over them.

What they name is left alone while the node is still routed there, because then the other agent holds that device. Once
it is routed elsewhere nothing else would ever restore the device.
"""

from __future__ import annotations

from pathlib import Path

from joulie.agent.budget.order_file import order_path
from joulie.agent.cluster_view import AgentView
from joulie.agent.restore.journal import POOL_BOOT_ID, Journal, JournalEntry, journal_path
from joulie.agent.routing.restore_entries import restore_entries
from joulie.agent.routing.routes import route_of
from joulie.agent.routing.wiring import Wiring
from joulie.logs import Log
from joulie.model.addresses import device_name
from joulie.model.snapshot import Node
from joulie.settings import AgentSettings


class HandedOver:
    """Read anew each time: shards may share a STATE_DIR, and then the other agent writes the same journal."""

    def __init__(self, settings: AgentSettings, view: AgentView, wiring: Wiring) -> None:
        self._settings = settings
        self._view = view
        self._wiring = wiring
        self._stale_before: dict[str, list[JournalEntry]] = {}
        self._log = Log("agent")

    async def look(self) -> None:
        """Restore what was stale at the last look, too: the other agent comes first where it knows of it."""
        for name, node in list(self._view.others.items()):
            if node is None or order_path(Path(self._settings.state_dir), name).exists():
                continue  # under a power budget the old device may be all that holds the node
            journal = Journal.open(journal_path(Path(self._settings.state_dir), name), node=name, boot_id=POOL_BOOT_ID)
            stale = self._stale(node, journal)
            if stale and stale == self._stale_before.get(name):
                cappers = self._wiring.cappers_for(name, stale, journal.found)
                for restored in await restore_entries(journal, cappers, [entry.knob for entry in stale]):
                    say = self._log.info if restored.done else self._log.warning
                    device = restored.knob.device
                    say(
                        "cap of another shard's node, on a route of before",
                        node=name,
                        device=device,
                        what=restored.message,
                    )
            self._stale_before[name] = stale

    def _stale(self, node: Node, journal: Journal) -> list[JournalEntry]:
        route = route_of(node.name, node.labels, self._view.profiles.values(), self._settings)
        routed = {device_name(control.endpoint) for control in (route.cpu, route.gpu) if control.type == "http"}
        return [entry for entry in journal.entries if entry.endpoint and entry.device not in routed]
