"""What a person should be told, collected instead of logged, each thing once."""

from __future__ import annotations


class Notices:
    """Lines for a log. A fault is told when it begins and when it ends, not while it lasts."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._faults: set[tuple[str, str]] = set()

    def say(self, *lines: str) -> None:
        self._lines += lines

    def fault(self, source: str, reason: str, over: str) -> None:
        """`reason` is empty while all is well; `over` tells the end of this fault, and this fault from others."""
        fault = (source, over)
        if reason and fault not in self._faults:
            self._faults.add(fault)
            self._lines.append(f"{source}: {reason}")
        elif not reason and fault in self._faults:
            self._faults.remove(fault)
            self._lines.append(f"{source}: {over}")

    def take(self) -> list[str]:
        """The lines since the last call."""
        lines, self._lines = self._lines, []
        return lines
