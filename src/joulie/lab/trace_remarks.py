"""What reading a trace brings up beside its jobs: bad lines, and what a person should know of a format."""

from __future__ import annotations

from dataclasses import dataclass, field

from joulie.errors import InputError

MOST_LISTED = 20


@dataclass(slots=True)
class Remarks:
    """With `skip_bad` bad lines are left out, counted, and the first listed; else the first one is an error."""

    skip_bad: bool = False
    bad_lines: int = 0
    listed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def bad(self, place: str, what: str, reason: str) -> None:
        """`place` is file and line, `what` the field."""
        said = f"{place}: {what}: {reason}" if what else f"{place}: {reason}"
        if not self.skip_bad:
            raise InputError(said)
        self.bad_lines += 1
        if len(self.listed) < MOST_LISTED:
            self.listed.append(said)

    def lines(self) -> list[str]:
        """Everything for a person, a line each."""
        said = list(self.notes)
        if self.bad_lines:
            said.append(f"{self.bad_lines:,} bad line{'s' * (self.bad_lines != 1)} left out:")
            said += [f"  {line}" for line in self.listed]
            if self.bad_lines > len(self.listed):
                said.append(f"  … and {self.bad_lines - len(self.listed):,} more")
        return said
