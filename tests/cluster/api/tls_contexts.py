"""Both ends of an encrypted connection on loopback."""

from __future__ import annotations

import ssl
from pathlib import Path

from testbed.credentials import write_certificates


def contexts(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A client's and a server's."""
    files = write_certificates(folder)
    theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    theirs.load_cert_chain(files.server, files.server_key)
    return ssl.create_default_context(cafile=str(files.ca)), theirs
