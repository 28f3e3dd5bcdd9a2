"""What counts as found on a device: what the journal says, else what is seen, unless that is a cap of an earlier agent.

An agent that was killed and is started with another STATE_DIR has no journal, but the twin still says what the last one
held. Where a device holds exactly that, the hardware's own maximum counts as found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from joulie.agent.outcome import Notice, ReportedCap
from joulie.agent.restore.journal import Journal
from joulie.devices.interface import Capper, DeviceError, Knob, Value


class UnknownBaselineError(DeviceError):
    """A cap of an earlier agent stands on the device, and what was there before it is not known."""

    result = "blocked"

    def __init__(self, knob: Knob, error: DeviceError) -> None:
        self.knob = knob
        super().__init__(
            f"{knob.device} {knob.attribute} still holds the cap of an earlier agent, of which there is no journal"
            f" here, and its own maximum is not known ({error}): start the agent with the STATE_DIR of before, or"
            " set the value by hand and restart the agent"
        )


class Baseline:
    """What counts as found on the knobs of one backend."""

    def __init__(self, capper: Capper, journal: Journal) -> None:
        self.claim: ReportedCap | None = None  # what an earlier agent is said to hold; compared with the first look
        self.replaced: dict[Knob, Value] = {}  # for knobs that hold such a cap: what counts as found instead
        self._capper = capper
        self._journal = journal

    def of(self, seen: Mapping[Knob, Value], *, is_first: bool) -> dict[Knob, Value]:
        """For each knob that is seen; `is_first`: the journal holds nothing of this backend yet."""
        if self.claim is not None and is_first and not self._journal.discarded:
            if self._is_leftover(seen, self.claim):
                self.replaced = {knob: self._unlimited(knob) for knob in seen}
                message = (
                    f"{self._capper.name} still holds the cap of an earlier agent, of which there is no journal here:"
                    " the hardware's own maximum counts as found"
                )
                self._journal.notices.append(Notice("CapWithoutJournal", message, "warning", event=True))
            self.claim = None
        return {knob: self._journal.found.get(knob, self.replaced.get(knob, value)) for knob, value in seen.items()}

    def forget(self, knobs: Iterable[Knob]) -> None:
        """For knobs that are back at what counted as found."""
        for knob in knobs:
            self.replaced.pop(knob, None)

    def _is_leftover(self, seen: Mapping[Knob, Value], claim: ReportedCap) -> bool:
        if self._capper.unit == "throttle_pct":
            return bool(claim.throttle_pct) and any(self._unlimited(knob) != value for knob, value in seen.items())
        held_w = self._capper.held(seen, seen)
        if claim.cap_w is None or held_w is None or abs(held_w - claim.cap_w) > max(1.0, 0.01 * claim.cap_w):
            return False
        unlimited = {knob: self._unlimited(knob) for knob in seen}
        full_w = self._capper.held(unlimited, unlimited)
        return full_w is None or held_w < full_w - 1.0

    def _unlimited(self, knob: Knob) -> Value:
        try:
            return self._capper.unlimited(knob)
        except DeviceError as error:
            raise UnknownBaselineError(knob, error) from error
