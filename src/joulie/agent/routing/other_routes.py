"""What was capped on another route is restored at that very device, retried until it is done."""

from __future__ import annotations

from collections.abc import Callable

from joulie.agent.enforcement.attempts import RetryDelay
from joulie.agent.enforcement.node_control import NodeControl
from joulie.agent.outcome import Notice
from joulie.agent.restore.journal import Journal
from joulie.agent.routing.restore_entries import restore_entries
from joulie.agent.routing.wiring import Wiring
from joulie.devices.interface import Knob
from joulie.logs import Log


class OtherRoutes:
    """Of one node."""

    def __init__(
        self, node: str, journal: Journal, wiring: Wiring, clock: Callable[[], float], interval_s: float
    ) -> None:
        self._node = node
        self._journal = journal
        self._wiring = wiring
        self._clock = clock
        self._delay = RetryDelay(interval_s)
        self._said: frozenset[tuple[Knob, str]] = frozenset()
        self._log = Log("agent")

    def reset(self) -> None:
        """The route has just changed: try at once."""
        self._delay.reset()

    async def restore(self, control: NodeControl, *, at_once: bool = False) -> tuple[Notice | None, bool]:
        """What to tell of it, and whether a try failed."""
        foreign = control.foreign
        if not foreign or control.simulate_only:
            control.elsewhere.clear()
            return None, False
        if not at_once and not self._delay.is_due(self._clock()):
            return None, False
        others = self._wiring.cappers_for(self._node, foreign, self._journal.found)
        results = await restore_entries(self._journal, others, [entry.knob for entry in foreign])
        for capper in others:
            await capper.close()
        for restored in results:
            if restored.done:
                device = restored.knob.device
                self._log.info("cap of an earlier route", node=self._node, device=device, what=restored.message)
        control.elsewhere = {restored.knob: restored.message for restored in results if not restored.done}
        if not control.elsewhere:
            self._said = frozenset()
            self._delay.reset()
            return None, False
        self._delay.failed(self._clock())
        if (said := frozenset(control.elsewhere.items())) == self._said:
            return None, True
        self._said = said
        told = "; ".join(f"{knob.device} {knob.attribute}: {why}" for knob, why in control.elsewhere.items())
        message = f"a cap of an earlier route could not be removed; retrying: {told}"
        return Notice("RestoreIncomplete", message, "warning", event=True), True
