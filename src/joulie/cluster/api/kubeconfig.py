"""Kubeconfig files as kubectl reads them: several files, contexts, certificates, rotating tokens, exec plug-ins."""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import ssl
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import yaml

from joulie.cluster.api.credentials import DEFAULT_NAMESPACE, Authorization, Credentials, TokenFile
from joulie.cluster.api.exec_plugin import run_plugin
from joulie.errors import InputError, one_line

CHECK_S = 10.0  # between two attempts to get a better token
EXPIRY_MARGIN_S = 10.0  # a token is replaced this long before it expires
MAX_MESSAGE_CHARS = 500


_Documents: TypeAlias = Sequence[tuple[Path, dict[str, Any]]]  # each file with what it holds


class NamedEntry(NamedTuple):
    """A cluster or user, and the folder that its relative paths refer to."""

    values: dict[str, Any]
    folder: Path


def load(files: tuple[Path, ...], context: str = "") -> Credentials:
    """The credentials of a context; InputError in one line."""
    shown = os.pathsep.join(map(str, files))
    documents = _documents(files)
    chosen = context or _current_context(documents, shown)
    active = _entry(documents, "context", chosen, f"{shown}: ").values
    try:
        cluster = _entry(documents, "cluster", active.get("cluster"))
        server = cluster.values.get("server")
        if not isinstance(server, str) or not server:
            raise InputError("the cluster has no server")
        ssl_context = _ssl_context(cluster) if server.startswith("https") else None
        return Credentials(
            server,
            _authorization(files, documents, active.get("user"), cluster.values, ssl_context),
            ssl_context=ssl_context,
            server_name=str(cluster.values.get("tls-server-name") or ""),
            proxy=str(cluster.values.get("proxy-url") or ""),
            namespace=str(active.get("namespace") or DEFAULT_NAMESPACE),
            origin=f"{shown}, context {chosen}",
        )
    except InputError as error:
        raise InputError(one_line(f"{shown}: context {chosen}: {error}", MAX_MESSAGE_CHARS)) from None


class _Login(NamedTuple):
    """An Authorization header and when it expires."""

    header: str | None
    expires_s: float | None = None


class _Renewed:
    """Renews a token that expired or was rejected, in a thread: a plug-in may take seconds, or open a browser."""

    def __init__(
        self, first: _Login, ask: Callable[[], _Login], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._login = first
        self._ask = ask
        self._clock = clock
        self._asked_at_s = clock()
        self._refused = False
        self._lock = asyncio.Lock()

    async def header(self) -> str | None:
        if self._due():
            async with self._lock:
                if self._due():
                    await asyncio.to_thread(self._renew)
        return self._login.header

    def forget(self) -> None:
        """The server rejected the token, whatever its expiry: renew it, but not too often."""
        self._refused = True

    def _due(self) -> bool:
        expires_s = self._login.expires_s
        expired = expires_s is not None and time.time() >= expires_s - EXPIRY_MARGIN_S
        return (self._refused or expired) and self._clock() - self._asked_at_s >= CHECK_S

    def _renew(self) -> None:
        """Keeps the last token if renewal fails; the server decides whether it is still valid."""
        self._refused = False
        self._asked_at_s = self._clock()
        try:
            self._login = self._ask()
        except InputError:
            self._refused = True


def _authorization(
    files: tuple[Path, ...],
    documents: _Documents,
    user_name: Any,
    cluster: Mapping[str, Any],
    ssl_context: ssl.SSLContext | None,
) -> Authorization | None:
    if not user_name:
        return None
    user = _entry(documents, "user", user_name)
    values = user.values
    for refused, remedy in (("auth-provider", "use an exec plug-in"), ("as", "use a user that has these rights")):
        if values.get(refused):
            raise InputError(f"user {user_name}: {refused} is not supported: {remedy}")
    if ssl_context is not None and (certificate := _content(user, "client-certificate")):
        _present(ssl_context, certificate, _content(user, "client-key"))
    if token_file := values.get("tokenFile"):
        return TokenFile(user.folder / str(token_file))

    if not any(values.get(way) for way in ("token", "username", "exec")):
        return None  # authenticated by the client certificate

    def ask() -> _Login:
        """Reads the files again: some tools write each new token into them."""
        return _log_in(_entry(_documents(files), "user", user_name), cluster, ssl_context)

    return _Renewed(_log_in(user, cluster, ssl_context), ask)


def _log_in(user: NamedEntry, cluster: Mapping[str, Any], ssl_context: ssl.SSLContext | None) -> _Login:
    values = user.values
    if values.get("token"):
        return _Login(f"Bearer {values['token']}")
    if values.get("username"):
        pair = f"{values['username']}:{values.get('password') or ''}"
        return _Login(f"Basic {base64.b64encode(pair.encode()).decode()}")
    if not isinstance(values.get("exec"), dict):
        raise InputError("exec is not a mapping")
    given = run_plugin(values["exec"], cluster, user.folder)
    if given.certificate is not None and ssl_context is not None:
        _present(ssl_context, *(part.encode() for part in given.certificate))
    return _Login(f"Bearer {given.token}" if given.token else None, given.expires_s)


def _ssl_context(cluster: NamedEntry) -> ssl.SSLContext:
    authority = _content(cluster, "certificate-authority")
    try:
        context = ssl.create_default_context(cadata=authority.decode("ascii") or None)
    except (ssl.SSLError, ValueError) as error:
        raise InputError(f"certificate-authority cannot be used: {error}") from None
    if cluster.values.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _present(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Presents this certificate to the server. OpenSSL loads it only from a file, so there is one for a moment."""
    with tempfile.NamedTemporaryFile(prefix="joulie-") as file:  # readable by its owner only
        file.write(certificate + b"\n" + key)
        file.flush()
        try:
            context.load_cert_chain(file.name)
        except (OSError, ssl.SSLError) as error:
            raise InputError(f"the client certificate cannot be used: {error}") from None


def _content(entry: NamedEntry, key: str) -> bytes:
    """The content of `key-data`, else of the file that `key` names, else nothing."""
    if data := entry.values.get(f"{key}-data"):
        try:
            return base64.b64decode(str(data), validate=True)
        except binascii.Error:
            raise InputError(f"{key}-data is not base64") from None
    if not (name := entry.values.get(key)):
        return b""
    path = entry.folder / str(name)
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def _entry(documents: _Documents, kind: str, wanted: Any, where: str = "") -> NamedEntry:
    """The first of that name in any of the files, as with kubectl."""
    known: list[str] = []
    for path, document in documents:
        for entry in document.get(f"{kind}s") or ():
            if not isinstance(entry, dict):
                continue
            if entry.get("name") == wanted and isinstance(entry.get(kind), dict):
                return NamedEntry(entry[kind], path.parent)
            known.append(str(entry.get("name")))
    raise InputError(one_line(f"{where}no {kind} {wanted}; known: {', '.join(known) or 'none'}", MAX_MESSAGE_CHARS))


def _current_context(documents: _Documents, shown: str) -> str:
    """The first file that names one decides, as with kubectl."""
    for _, document in documents:
        if isinstance(named := document.get("current-context"), str) and named:
            return named
    raise InputError(f"{shown}: no current-context: choose one with --context")


def _documents(files: tuple[Path, ...]) -> _Documents:
    documents: list[tuple[Path, dict[str, Any]]] = []
    for path in files:
        try:
            document = yaml.safe_load(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from None
        except (yaml.YAMLError, ValueError) as error:
            raise InputError(one_line(f"{path}: is not YAML: {error}", MAX_MESSAGE_CHARS)) from None
        if document is not None and not isinstance(document, dict):
            raise InputError(f"{path}: is not a kubeconfig")
        documents.append((path, document or {}))
    return documents
