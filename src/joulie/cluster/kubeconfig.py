"""A kubeconfig, read by the loader of the `kubernetes` package: contexts, exec plug-ins, tokens that expire.

Imported only when there is a kubeconfig, because that package is heavy.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from joulie.cluster.credentials import DEFAULT_NAMESPACE, Credentials, trusting
from joulie.errors import InputError

CHECK_S = 10.0  # how often the loader is asked whether its token is still good


def load(files: tuple[Path, ...], context: str = "") -> Credentials:
    """The server and user of a context; InputError in one line."""
    shown = os.pathsep.join(map(str, files))
    chosen = context or _current_context(files)
    active = _context(files, chosen, shown)
    configuration = _read(files, chosen, shown)
    if not configuration.host:
        raise InputError(f"{shown}: context {chosen}: the cluster has no server")
    authorization = None
    if configuration.api_key.get(_TOKEN):
        authorization = _LoadedToken(configuration, lambda: _read(files, chosen, shown))
    return Credentials(
        configuration.host,
        authorization,
        ssl_context=_ssl_context(configuration, shown) if configuration.host.startswith("https") else None,
        server_name=getattr(configuration, "tls_server_name", None) or "",
        proxy=getattr(configuration, "proxy", None) or "",
        namespace=active.get("namespace") or DEFAULT_NAMESPACE,
        origin=f"{shown}, context {chosen}",
    )


_TOKEN = "BearerToken"


class _LoadedToken:
    """Asks the loader now and then, in a thread: a plug-in may take seconds, or open a browser."""

    def __init__(
        self, configuration: Any, reload: Callable[[], Any], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._configuration = configuration
        self._reload = reload
        self._clock = clock
        self._header: str | None = configuration.api_key[_TOKEN]
        self._checked_at_s = clock()
        self._refused = False
        self._lock = asyncio.Lock()

    async def header(self) -> str | None:
        if self._clock() - self._checked_at_s >= CHECK_S:
            async with self._lock:
                if self._clock() - self._checked_at_s >= CHECK_S:
                    self._header = await asyncio.to_thread(self._fresh)
                    self._checked_at_s = self._clock()
        return self._header

    def forget(self) -> None:
        """Whatever the file says about expiry, this token is refused: read everything anew, but not too often."""
        self._refused = True

    def _fresh(self) -> str | None:
        if self._refused:
            self._refused = False
            try:
                self._configuration = self._reload()
            except InputError:
                return self._header
        header: str | None = self._configuration.get_api_key_with_prefix(_TOKEN)
        return header or self._header


def _read(files: tuple[Path, ...], context: str, shown: str) -> Any:
    from kubernetes.client import Configuration
    from kubernetes.config import ConfigException, load_kube_config

    configuration = type.__call__(Configuration)  # not a copy of the package's global default
    complaints = _Complaints()
    logging.getLogger().addHandler(complaints)
    try:
        load_kube_config(  # type: ignore[no-untyped-call]
            config_file=os.pathsep.join(map(str, files)), context=context, client_configuration=configuration
        )
    except (ConfigException, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(_one_line(f"{shown}: context {context}: {error}")) from None
    finally:
        logging.getLogger().removeHandler(complaints)
    if complaints.first:  # the loader logs what a plug-in did wrong, and goes on without credentials
        raise InputError(_one_line(f"{shown}: context {context}: {complaints.first}"))
    return configuration


class _Complaints(logging.Handler):
    """Catches what the loader would only log."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.first = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.first = self.first or record.getMessage()


def _documents(files: tuple[Path, ...]) -> list[dict[str, Any]]:
    documents = []
    for path in files:
        try:
            document = yaml.safe_load(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from None
        except (yaml.YAMLError, ValueError) as error:
            raise InputError(_one_line(f"{path}: is not YAML: {error}")) from None
        if document is not None and not isinstance(document, dict):
            raise InputError(f"{path}: is not a kubeconfig")
        documents.append(document or {})
    return documents


def _current_context(files: tuple[Path, ...]) -> str:
    """Of several files the first that names one decides, as with kubectl; the package would take the last."""
    for document in _documents(files):
        if isinstance(named := document.get("current-context"), str) and named:
            return named
    raise InputError(f"{os.pathsep.join(map(str, files))}: no current-context: choose one with --context")


def _context(files: tuple[Path, ...], wanted: str, shown: str) -> dict[str, Any]:
    known: list[str] = []
    for document in _documents(files):
        for entry in document.get("contexts") or ():
            if not isinstance(entry, dict):
                continue
            if entry.get("name") == wanted and isinstance(entry.get("context"), dict):
                return dict(entry["context"])
            known.append(str(entry.get("name")))
    raise InputError(_one_line(f"{shown}: no context {wanted}: known are {', '.join(known) or 'none'}"))


def _ssl_context(configuration: Any, shown: str) -> ssl.SSLContext:
    context = trusting(Path(configuration.ssl_ca_cert) if configuration.ssl_ca_cert else None)
    if configuration.verify_ssl is False:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        try:
            context.load_cert_chain(configuration.cert_file, configuration.key_file or None)
        except (OSError, ssl.SSLError) as error:
            raise InputError(_one_line(f"{shown}: the client certificate cannot be used: {error}")) from None
    return context


def _one_line(text: str) -> str:
    return " ".join(text.split())[:500]
