"""HTTPS with a certificate that may be replaced while connections last."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

from joulie.errors import InputError
from joulie.logs import Log
from joulie.settings import ExtenderSettings

LOOK_EVERY_S = 5.0


class Certificate:
    """A TLS context and the files that it was read from."""

    def __init__(self, cert_file: str, key_file: str) -> None:
        self._files = (Path(cert_file), Path(key_file))
        self._log = Log("extender")
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._seen = self._looks()
        try:
            self.context.load_cert_chain(*self._files)
        except (OSError, ssl.SSLError) as error:
            raise InputError(f"EXTENDER_TLS_CERT_FILE={cert_file!r} cannot be used: {_reason(error)}") from None

    async def follow(self) -> None:
        """Take a new certificate for new connections; one that cannot be used leaves the old in force."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            looks = self._looks()
            if looks == self._seen:
                continue
            self._seen = looks
            try:
                self.context.load_cert_chain(*self._files)
            except (OSError, ssl.SSLError) as error:
                self._log.warning("new certificate cannot be used, the old one stays", reason=_reason(error))
            else:
                self._log.info("new certificate taken")

    def _looks(self) -> list[tuple[int, int, int]]:
        """What changes when a file is written or, as Kubernetes does it, a link is turned to another file."""
        found = []
        for path in self._files:
            try:
                stat = path.stat()
            except OSError:
                found.append((0, 0, 0))
            else:
                found.append((stat.st_ino, stat.st_mtime_ns, stat.st_size))
        return found


def certificate(settings: ExtenderSettings) -> Certificate | None:
    """None: plain HTTP."""
    if not settings.tls_cert_file and not settings.tls_key_file:
        return None
    for variable, value in (
        ("EXTENDER_TLS_CERT_FILE", settings.tls_cert_file),
        ("EXTENDER_TLS_KEY_FILE", settings.tls_key_file),
    ):
        if not value:
            raise InputError(f"{variable} is not set: HTTPS needs a certificate and its key")
    return Certificate(settings.tls_cert_file, settings.tls_key_file)


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
