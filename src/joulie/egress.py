"""What all HTTP clients of ours share: no redirects, and of a foreign answer nothing but its status is ever shown.

Otherwise a user who may name an address (a TelemetryProfile, a setting) could read through Joulie what only Joulie
reaches.
"""

from __future__ import annotations

import re

import aiohttp

NO_REDIRECTS = False  # the value of `allow_redirects` in every request

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


def why_no_answer(error: Exception) -> str:
    """Why a request failed, in words of our own: an exception may quote the address or what was answered."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return "no connection: the server's certificate is not trusted, or it speaks no TLS"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "no connection: the host's name is not known"
    if isinstance(error, aiohttp.ServerDisconnectedError | ConnectionResetError | BrokenPipeError):
        return "the connection was closed before an answer came"
    if isinstance(error, OSError):
        return f"no connection: {error.strerror or type(error).__name__}"
    if isinstance(error, aiohttp.ClientResponseError | aiohttp.ClientPayloadError):
        return "the answer is not complete HTTP"
    if isinstance(error, aiohttp.InvalidURL | ValueError):
        return "this is not an address that can be asked"
    return type(error).__name__


def why_unreadable(error: Exception) -> str:
    """Why an answer could not be decoded: where and what was expected, without the value that stood there."""
    return _QUOTED.sub("…", " ".join(str(error).split()))[:200] if str(error) else type(error).__name__
