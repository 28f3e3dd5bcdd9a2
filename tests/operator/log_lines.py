"""What the operator logs, as a test reads it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class Line(NamedTuple):
    level: str
    message: str
    fields: dict[str, Any]


class Logged(logging.Handler):
    """Everything since it was started, line by line."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Line] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(Line(record.levelname.lower(), record.getMessage(), getattr(record, "fields", {})))

    def saying(self, message: str) -> list[Line]:
        return [line for line in self.lines if line.message == message]

    def about(self, key: str) -> list[Line]:
        """Lines that name an object."""
        return [line for line in self.lines if key in f"{line.message} {line.fields}"]

    def besides(self, *messages: str) -> list[Line]:
        return [line for line in self.lines if line.message not in messages]


@contextmanager
def logged() -> Iterator[Logged]:
    logger, handler = logging.getLogger("joulie.operator"), Logged()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
