"""An extender that does nothing but answer: every node passes, every node is worth the same.

On the same server as Joulie's, so that the difference between the two is what Joulie does. Names only.
"""

from __future__ import annotations

import asyncio
import sys

import msgspec
from aiohttp import web
from msgspec import Raw, Struct

JSON = "application/json"


class _Body(Struct):
    names: Raw = msgspec.field(name="NodeNames")


_BODY = msgspec.json.Decoder(_Body)


async def answer(request: web.BaseRequest) -> web.Response:
    """The names as they came, or each with the same score."""
    names = bytes(_BODY.decode(await request.read()).names)
    if request.path == "/filter":
        kept = b'{"Nodes":null,"NodeNames":%b,"FailedNodes":{},"Error":""}' % names
        return web.Response(body=kept, content_type=JSON)
    scored = names[1:-1].replace(b",", b',"Score":50},{"Host":')
    return web.Response(body=b'[{"Host":%b,"Score":50}]' % scored, content_type=JSON)


async def serve(address: str) -> None:
    runner = web.ServerRunner(web.Server(answer, access_log=None, auto_decompress=False))
    await runner.setup()
    host, _, port = address.rpartition(":")
    await web.TCPSite(runner, host, int(port)).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
