"""Messages for the log, collected instead of logged, each once."""

from __future__ import annotations


class Notices:
    """Lines for a log. A fault is reported when it begins and when it ends, not while it lasts."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._faults: set[tuple[str, str]] = set()

    def say(self, *lines: str) -> None:
        self._lines += lines

    def fault(self, source: str, reason: str, over: str) -> None:
        """`reason` is empty without a fault; `over` is the message at its end, and identifies it."""
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
