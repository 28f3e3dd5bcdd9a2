"""What reading a trace brings up beside its jobs: bad lines, and what a person should know of a format."""

from __future__ import annotations

import re
from bisect import insort
from dataclasses import dataclass, field

from joulie.errors import InputError

MAX_LISTED = 20


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
        if len(self.listed) < MAX_LISTED or _line(said) < _line(self.listed[-1]):
            insort(self.listed, said, key=_line)  # some checks come when others have seen all lines
            del self.listed[MAX_LISTED:]

    def no_job(self, origin: str) -> InputError:
        """To be raised where none is left."""
        first = f" that is good: {self._left_out}, the first is {self.listed[0]}" if self.bad_lines else ""
        return InputError(f"{origin}: holds no job{first}")

    @property
    def _left_out(self) -> str:
        return f"{self.bad_lines:,} bad line{'s' * (self.bad_lines != 1)} left out"

    def lines(self) -> list[str]:
        """Everything for a person, a line each."""
        said = list(self.notes)
        if self.bad_lines:
            said.append(f"{self._left_out}:")
            said += [f"  {line}" for line in self.listed]
            if self.bad_lines > len(self.listed):
                said.append(f"  … and {self.bad_lines - len(self.listed):,} more")
        return said


def _line(said: str) -> int:
    """The number of the line that is named."""
    found = re.search(r":(\d+): ", said)
    return int(found[1]) if found else 0
