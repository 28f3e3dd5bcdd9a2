"""Asks kubelet over its socket. gRPC by grpclib (the extra `joulie[podresources]`), imported only when it is used."""

from __future__ import annotations

import asyncio
from typing import Any

from joulie.errors import one_line
from joulie.sources.podresources.messages import GpuHolder, gpu_holders
from joulie.sources.transport import MAX_REASON_CHARS, SourceError

LIST = "/v1.PodResourcesLister/List"
TIMEOUT_S = 5.0


async def list_gpu_holders(socket_path: str, timeout_s: float = TIMEOUT_S) -> list[GpuHolder]:
    """Every GPU that a container holds now; SourceError with the reason where kubelet does not say."""
    try:
        from grpclib.client import Channel, UnaryUnaryMethod
    except ImportError as error:
        raise SourceError(f"gRPC is missing; install joulie[podresources] ({error})") from None
    channel = Channel(path=socket_path, codec=_plain_bytes())
    try:
        ask: UnaryUnaryMethod[bytes, bytes] = UnaryUnaryMethod(channel, LIST, bytes, bytes)
        async with asyncio.timeout(timeout_s):
            return gpu_holders(await ask(b""))
    except TimeoutError:
        raise SourceError(f"kubelet did not answer within {timeout_s:g} s") from None
    except SourceError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever HTTP/2 makes of a foreign socket, caps go on
        raise SourceError(f"{socket_path}: {one_line(repr(error), MAX_REASON_CHARS)}") from None
    finally:
        channel.close()


def _plain_bytes() -> Any:
    """Messages as they are on the wire: `messages` reads them."""
    from grpclib.encoding.base import CodecBase

    class PlainBytes(CodecBase):
        __content_subtype__ = "proto"

        def encode(self, message: bytes, message_type: Any) -> bytes:
            return message

        def decode(self, data: bytes, message_type: Any) -> bytes:
            return data

    return PlainBytes()
