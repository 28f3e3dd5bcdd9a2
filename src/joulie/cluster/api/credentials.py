"""Address of the API server and credentials for it: from a kubeconfig or from the pod, in kubectl's order."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from joulie.errors import InputError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REREAD_S = 60.0  # tokens are rotated long before they expire, so a minute of delay does not matter
DEFAULT_NAMESPACE = "default"


class Authorization(Protocol):
    """Produces the Authorization header, and renews what rotates or expires."""

    async def header(self) -> str | None: ...

    def forget(self) -> None:
        """The server rejected it (401): the next header must be a fresh one."""
        ...


class Credentials:
    """One API server and the credentials for it."""

    def __init__(
        self,
        url: str,
        authorization: Authorization | None = None,
        *,
        ssl_context: ssl.SSLContext | None = None,
        server_name: str = "",
        proxy: str = "",
        namespace: str = DEFAULT_NAMESPACE,
        origin: str = "",
    ) -> None:
        self.url = url.rstrip("/")
        self.ssl_context = ssl_context
        self.server_name = server_name  # the name in the server's certificate, if not the URL's
        self.proxy = proxy
        self.namespace = namespace
        self.origin = origin  # for people: where these credentials come from
        self._authorization = authorization

    async def authorization(self) -> str | None:
        """The header's value, or None with a client certificate."""
        return None if self._authorization is None else await self._authorization.header()

    def forget(self) -> None:
        if self._authorization is not None:
            self._authorization.forget()


class TokenFile:
    """A token in a file that another program rotates: read again when the file changes, and every minute."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._header = ""
        self._modified_ns = -1
        self._read_at_s = float("-inf")
        self._read()

    async def header(self) -> str | None:
        now_s = self._clock()
        if now_s - self._read_at_s >= REREAD_S or self._changed():
            self._reread()
        return self._header

    def forget(self) -> None:
        self._read_at_s = float("-inf")

    def _changed(self) -> bool:
        try:
            return self._path.stat().st_mtime_ns != self._modified_ns
        except OSError:
            return False

    def _reread(self) -> None:
        """Keeps the last token while the file cannot be read: it is most likely still valid."""
        try:
            self._read()
        except InputError:
            self._read_at_s = self._clock()

    def _read(self) -> None:
        try:
            modified_ns = self._path.stat().st_mtime_ns
            token = self._path.read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not a token"
            raise InputError(f"{self._path}: cannot be read ({reason}): is a service account mounted?") from None
        if not token or not token.isprintable():
            raise InputError(f"{self._path}: contains no token: is a service account mounted?")
        self._header, self._modified_ns, self._read_at_s = f"Bearer {token}", modified_ns, self._clock()


def find_credentials(
    env: Mapping[str, str], *, kubeconfig: str = "", context: str = "", home: Path | None = None
) -> Credentials:
    """As kubectl would: `kubeconfig`, `$KUBECONFIG`, `~/.kube/config`, and else the pod that we run in."""
    if kubeconfig:
        if not Path(kubeconfig).expanduser().is_file():
            raise InputError(f"{kubeconfig}: no such kubeconfig file")
        return _from_kubeconfig((Path(kubeconfig).expanduser(),), context)
    listed = [Path(part).expanduser() for part in env.get("KUBECONFIG", "").split(os.pathsep) if part]
    default = (home or Path(env.get("HOME") or "~").expanduser()) / ".kube" / "config"
    files = tuple(path for path in (listed or [default]) if path.is_file())
    if files:
        return _from_kubeconfig(files, context)
    if context:
        raise InputError(f"--context {context}: no kubeconfig found: set KUBECONFIG or use --kubeconfig")
    if env.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(env)
    if listed:
        raise InputError(f"KUBECONFIG={env['KUBECONFIG']}: no such file")
    raise InputError(f"no cluster: {default} does not exist and this is not a pod; set KUBECONFIG or use --kubeconfig")


def in_cluster(env: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> Credentials:
    """The credentials of every pod: two environment variables, a CA certificate and a rotating token."""
    host, port = env.get("KUBERNETES_SERVICE_HOST", ""), env.get("KUBERNETES_SERVICE_PORT", "") or "443"
    if not host:
        raise InputError("KUBERNETES_SERVICE_HOST is not set: this is not a pod; use --kubeconfig")
    try:
        namespace = (folder / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        namespace = ""
    return Credentials(
        f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        TokenFile(folder / "token"),
        ssl_context=trusting(folder / "ca.crt"),
        namespace=namespace or DEFAULT_NAMESPACE,
        origin="the service account of this pod",
    )


def trusting(ca_file: Path | None) -> ssl.SSLContext:
    """A context that trusts only this authority, or with None those of the system."""
    try:
        return ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or str(error)
        raise InputError(f"{ca_file}: cannot be used as certificate authority ({reason})") from None


def _from_kubeconfig(files: tuple[Path, ...], context: str) -> Credentials:
    from joulie.cluster.api import kubeconfig  # needs YAML, which a pod does not

    return kubeconfig.load(files, context)
