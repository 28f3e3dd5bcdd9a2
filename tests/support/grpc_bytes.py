"""gRPC servers and calls whose messages are plain bytes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from grpclib.const import Cardinality, Handler
from grpclib.encoding.base import CodecBase
from grpclib.server import Server, Stream

Answer = Callable[["Stream[bytes, bytes]"], Awaitable[None]]


class PlainBytes(CodecBase):
    """No message is looked into."""

    __content_subtype__ = "proto"

    def encode(self, message: bytes, message_type: Any) -> bytes:
        return message

    def decode(self, data: bytes, message_type: Any) -> bytes:
        return data


class _Service:
    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self._answers = answers

    def __mapping__(self) -> dict[str, Handler]:
        kind = Cardinality.UNARY_STREAM
        return {path: Handler(answer, kind, bytes, bytes) for path, answer in self._answers.items()}


def server(answers: Mapping[str, Answer]) -> Server:
    """Not started yet: path of a method → what answers it."""
    return Server([_Service(answers)], codec=PlainBytes())


def always(message: bytes) -> Answer:
    """The same to every question."""

    async def answer(stream: Stream[bytes, bytes]) -> None:
        await stream.recv_message()
        await stream.send_message(message)

    return answer
