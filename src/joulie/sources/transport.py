"""HTTP requests that tolerate any endpoint: deadlines, bounded bodies, one-line errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Generic, TypeVar

import aiohttp
from msgspec import Struct
from yarl import URL

from joulie.egress import NO_REDIRECTS, why_no_answer
from joulie.errors import JoulieError, one_line

T = TypeVar("T")

MAX_REASON_CHARS = 200
MAX_BODY_BYTES = 32 * 1024 * 1024  # 5,000 series are about 1 MB


class SourceError(JoulieError):
    """A telemetry source did not answer, or not as expected."""


class RequestLimits(Struct, frozen=True):
    """How long a source may take, and how many requests run at once."""

    call_timeout_s: float = 5.0
    deadline_s: float = 20.0  # for all requests to one source in one refresh
    calls_at_once: int = 64


class CallResults(Struct, Generic[T]):
    """The results of many calls, and the reasons of those that failed."""

    results: dict[str, T]
    failures: dict[str, str]


class HttpReply(Struct, frozen=True):
    """Status and body, whatever the status."""

    status: int
    body: bytes | bytearray


async def get(
    session: aiohttp.ClientSession, url: URL | str, timeout_s: float, params: Mapping[str, str] | None = None
) -> HttpReply:
    """One GET; SourceError with a short reason if there is no complete response in time."""
    try:
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        async with session.get(url, params=params, timeout=timeout, allow_redirects=NO_REDIRECTS) as response:
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    raise SourceError(f"the response is larger than {MAX_BODY_BYTES >> 20} MiB")
            return HttpReply(response.status, body)
    except TimeoutError:
        raise SourceError(f"no answer within {timeout_s:g} s") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise SourceError(why_no_answer(error)) from None


async def ask_each(
    keys: Iterable[str],
    call: Callable[[str], Awaitable[T]],
    limits: RequestLimits,
    reason_if_late: str = "not asked in time",
) -> CallResults[T]:
    """Runs `call` for every key, a bounded number at once; calls unfinished at the deadline count as failed."""
    waiting = list(dict.fromkeys(keys))
    found: CallResults[T] = CallResults({}, {})
    upcoming = iter(waiting)

    async def work() -> None:
        for key in upcoming:  # shared by all workers: each takes the next one
            try:
                found.results[key] = await call(key)
            except SourceError as error:
                found.failures[key] = str(error)
            except Exception as error:  # noqa: BLE001 - whatever one endpoint does costs that endpoint alone
                found.failures[key] = f"{type(error).__name__}: {one_line(error, MAX_REASON_CHARS)}"

    try:
        async with asyncio.timeout(limits.deadline_s), asyncio.TaskGroup() as workers:
            for _ in range(min(limits.calls_at_once, len(waiting))):
                workers.create_task(work())
    except TimeoutError:
        for key in waiting:
            if key not in found.results:
                found.failures.setdefault(key, reason_if_late)
    return found


def raise_if_all_failed(failures: Mapping[str, str], keys: Collection[str]) -> None:
    """If no call succeeded, the source as a whole has failed."""
    if failures and len(failures) == len(set(keys)):
        key, reason = min(failures.items())
        raise SourceError(f"all requests failed; {key}: {reason}")
