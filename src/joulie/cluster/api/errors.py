"""Error responses of the API server as one-line errors of the port."""

from __future__ import annotations

from typing import NoReturn

from msgspec import Struct, json

from joulie.cluster.port import ClusterError, ConflictError, NotFoundError
from joulie.errors import one_line

MAX_MESSAGE_CHARS = 300


class _Details(Struct, rename="camel"):
    retry_after_seconds: float | None = None


class ApiStatus(Struct):
    """The fields of a `v1/Status` that are used."""

    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: _Details | None = None


_STATUS = json.Decoder(ApiStatus)


def raise_api_error(message: str, status: int, retry_after_s: float | None = None) -> NoReturn:
    """Raises the error class for a status."""
    error_class = {404: NotFoundError, 409: ConflictError}.get(status, ClusterError)
    raise error_class(one_line(message, MAX_MESSAGE_CHARS), status=status, retry_after_s=retry_after_s) from None


def read_status(data: bytes) -> ApiStatus:
    """The Status object in an error response; an empty one for anything else, such as a proxy's error page."""
    try:
        return _STATUS.decode(data)
    except ValueError:
        return ApiStatus()
