"""What every answer says to a browser, and under which names the dashboard lets itself be asked.

The page needs no password because it changes nothing, but what it shows is not for every site that a user happens to
visit. A foreign page cannot read answers (no CORS) unless its own name is made to point here (DNS rebinding): so a
name that was not given to this dashboard is refused.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Collection

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

ANY_HOST = "*"
# Nothing but our own files, no inline code or styles, no markup made from strings, and no page may frame this one.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_OWN_SUFFIXES = (".localhost", ".svc", ".svc.cluster.local", ".local", ".internal")


def guarded(handler: Handler, hosts: Collection[str]) -> Handler:
    """The handler behind a check of the name it was asked by."""

    async def answer(request: web.Request) -> web.StreamResponse:
        host = host_name(request.headers.get("Host", ""))
        if not is_known(host, hosts):
            text = f"the dashboard does not answer as {host[:253]!r}: add the name to DASHBOARD_HOSTS\n"
            return web.Response(status=421, text=text, headers=HEADERS)
        return await handler(request)

    return answer


def is_known(host: str, hosts: Collection[str]) -> bool:
    """Addresses and names that only make sense nearby are known; others have to be told."""
    if ANY_HOST in hosts or host in hosts or host.endswith(_OWN_SUFFIXES):
        return True
    if "." not in host and ":" not in host:
        return host != ""  # localhost, a Service's short name
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def host_name(header: str) -> str:
    """A Host header without its port, in lower case."""
    name = header.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0] if name.count(":") == 1 else name
