"""Asks a scheduler extender over HTTP as kube-scheduler does with `nodeCacheCapable: true`: names only."""

from __future__ import annotations

from typing import Any

import aiohttp
import msgspec
from msgspec import Raw, Struct

from joulie.egress import NO_REDIRECTS


class _Filtered(Struct):
    names: list[str] | None = msgspec.field(name="NodeNames", default=None)
    error: str = msgspec.field(name="Error", default="")


class _Scored(Struct):
    host: str = msgspec.field(name="Host")
    score: int = msgspec.field(name="Score")


class ExtenderClient:
    """`pod` is the pod's JSON. Raises aiohttp.ClientError, TimeoutError or MsgspecError where there is no answer."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, url

    async def filter(self, pod: bytes, names: list[str]) -> list[str]:
        """The candidates that are left."""
        answer = msgspec.json.decode(await self._ask("filter", pod, names), type=_Filtered)
        if answer.error:
            raise aiohttp.ClientPayloadError(answer.error)
        return answer.names or []

    async def prioritize(self, pod: bytes, names: list[str]) -> dict[str, int]:
        answer = msgspec.json.decode(await self._ask("prioritize", pod, names), type=list[_Scored])
        return {scored.host: scored.score for scored in answer}

    async def _ask(self, verb: str, pod: bytes, names: list[str]) -> bytes:
        body: dict[str, Any] = {"Pod": Raw(pod), "Nodes": None, "NodeNames": names}
        async with self._session.post(
            f"{self._url}/{verb}", data=msgspec.json.encode(body), allow_redirects=NO_REDIRECTS
        ) as response:
            response.raise_for_status()
            return await response.read()
