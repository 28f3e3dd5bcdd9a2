"""What the API server says when it says no, as an error of the port in one line."""

from __future__ import annotations

from typing import NoReturn

from msgspec import Struct, json

from joulie.cluster.port import ClusterError, ConflictError, NotFoundError

_LONGEST_MESSAGE = 300


class _Details(Struct, rename="camel"):
    retry_after_seconds: float | None = None


class Status(Struct):
    """What the API server says when it says no."""

    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: _Details | None = None


_STATUS = json.Decoder(Status)


def raise_refusal(message: str, status: int, retry_after_s: float | None = None) -> NoReturn:
    """The error class that belongs to a status."""
    error_class = {404: NotFoundError, 409: ConflictError}.get(status, ClusterError)
    raise error_class(one_line(message), status=status, retry_after_s=retry_after_s) from None


def read_status(data: bytes) -> Status:
    """A Status object; a proxy's error page has none of that, and says nothing."""
    try:
        return _STATUS.decode(data)
    except ValueError:
        return Status()


def one_line(text: str) -> str:
    """Short, and safe to print."""
    short = text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}..."
    return short if short.isprintable() else " ".join(short.split()).encode("unicode_escape").decode()
