"""Structured logs: one JSON object a line on standard error. Only shells log; what decides returns its reasons."""

from __future__ import annotations

import logging
import sys
from typing import Any, TextIO

import msgspec

from joulie.model.rfc3339 import format_time

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": format_time(record.created),
            "level": record.levelname.lower(),
            "component": record.name.removeprefix("joulie."),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(fields, enc_hook=str).decode()


class Log:
    """A component's log: a message and named fields."""

    def __init__(self, component: str) -> None:
        self._logger = logging.getLogger(f"joulie.{component}")

    def debug(self, message: str, **fields: Any) -> None:
        self._logger.debug(message, extra={"fields": fields})

    def info(self, message: str, **fields: Any) -> None:
        self._logger.info(message, extra={"fields": fields})

    def warning(self, message: str, **fields: Any) -> None:
        self._logger.warning(message, extra={"fields": fields})

    def error(self, message: str, *, exc_info: bool = False, **fields: Any) -> None:
        self._logger.error(message, exc_info=exc_info, extra={"fields": fields})


def start_logging(level: str = "info", stream: TextIO | None = None) -> None:
    """Send Joulie's logs to standard error as JSON lines."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_JsonLines())
    root = logging.getLogger("joulie")
    root.handlers[:] = [handler]
    root.setLevel(LEVELS[level])
    root.propagate = False
