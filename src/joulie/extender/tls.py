"""HTTPS with a certificate that can be rotated while the server runs."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

from joulie.errors import InputError
from joulie.logs import Log
from joulie.settings import ExtenderSettings

CHECK_INTERVAL_S = 5.0
VARIABLES = ("EXTENDER_TLS_CERT_FILE", "EXTENDER_TLS_KEY_FILE")


class Certificate:
    """A TLS context that presents the latest certificate of two files to each new connection."""

    def __init__(self, cert_file: str, key_file: str) -> None:
        self._files = (Path(cert_file), Path(key_file))
        self._log = Log("extender")
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.sni_callback = self._show
        self._seen = self._fingerprint()
        for variable, path in zip(VARIABLES, self._files, strict=True):
            try:
                path.read_bytes()
            except OSError as error:
                raise InputError(f"{variable}={str(path)!r} cannot be read: {_reason(error)}") from None
        try:
            self._latest = self._load()
        except (OSError, ssl.SSLError) as error:
            raise InputError(f"{self._names()} cannot be used: {_reason(error)}") from None

    async def follow(self) -> None:
        """Reloads changed files for new connections; an unusable certificate leaves the old one in use."""
        complaint = ""
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            found = self._fingerprint()
            if found == self._seen:
                continue
            try:
                self._latest = self._load()
            except (OSError, ssl.SSLError) as error:  # retried: a key may become readable without being written
                before, complaint = complaint, _reason(error)
                if complaint != before:
                    what = "new certificate cannot be used; keeping the old one"
                    self._log.warning(what, files=self._names(), reason=complaint)
            else:
                self._seen, complaint = found, ""
                self._log.info("new certificate loaded")

    def _names(self) -> str:
        return " and ".join(f"{name}={str(path)!r}" for name, path in zip(VARIABLES, self._files, strict=True))

    def _load(self) -> ssl.SSLContext:
        """Uses a new context: an existing one keeps a certificate per key type and might present an older one."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*self._files, password=_no_password)
        return context

    def _show(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        """Called for every connection, even without SNI."""
        connection.context = self._latest

    def _fingerprint(self) -> list[tuple[int, int, int]]:
        """Changes when a file is written or, as Kubernetes does it, a symbolic link is switched."""
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
    for variable, value in zip(VARIABLES, (settings.tls_cert_file, settings.tls_key_file), strict=True):
        if not value:
            raise InputError(f"{variable} is not set: HTTPS needs a certificate and its key")
    return Certificate(settings.tls_cert_file, settings.tls_key_file)


def _no_password() -> str:
    """Prevents OpenSSL from prompting on the terminal."""
    return ""


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return _MEANINGS.get(error.reason or "", "not a PEM certificate, or an encrypted or incomplete key")
    return (isinstance(error, OSError) and error.strerror) or str(error)


_MEANINGS = {
    "KEY_VALUES_MISMATCH": "the key does not match the certificate",
    "NO_CERTIFICATE_ASSIGNED": "the key does not match the certificate",
    "KEY_TYPE_MISMATCH": "the key does not match the certificate",
    "EE_KEY_TOO_SMALL": "the certificate's key is too short",
    "CA_MD_TOO_WEAK": "the certificate's signature is too weak",
}
