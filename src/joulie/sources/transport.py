"""Asking over HTTP so that nothing an endpoint does can hurt: deadlines, bounded bodies, one-line errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Generic, TypeVar

import aiohttp
from msgspec import Struct
from yarl import URL

from joulie.errors import JoulieError

T = TypeVar("T")

LONGEST_REASON = 200
LARGEST_BODY = 64 * 1024 * 1024  # 5,000 series are about 1 MB


class SourceError(JoulieError):
    """A telemetry source did not answer, or not with what it should."""


class Limits(Struct, frozen=True):
    """How long a source may take, and how much it is asked at once."""

    call_timeout_s: float = 5.0
    deadline_s: float = 20.0  # of everything that one source is asked in one refresh
    calls_at_once: int = 64


class Answers(Struct, Generic[T]):
    """What many calls brought: results of those that answered, the reason for each that did not."""

    results: dict[str, T]
    failures: dict[str, str]


class Reply(Struct, frozen=True):
    """Status and body, whatever the status."""

    status: int
    body: bytes


def one_line(text: object) -> str:
    """Words of others, as much of them as fits into a line of a log."""
    line = " ".join(str(text).split())
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"


def without_credentials(address: str) -> str:
    """The address as it may be shown."""
    return str(URL(address).with_user(None))


async def get(
    session: aiohttp.ClientSession, url: URL | str, timeout_s: float, params: Mapping[str, str] | None = None
) -> Reply:
    """One GET; SourceError with a short reason when there is no complete answer in time."""
    try:
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        async with session.get(url, params=params, timeout=timeout) as response:
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > LARGEST_BODY:
                    raise SourceError(f"the answer is larger than {LARGEST_BODY >> 20} MiB")
            return Reply(response.status, bytes(body))
    except TimeoutError:
        raise SourceError(f"no answer within {timeout_s:g} s") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise SourceError(one_line(error) or type(error).__name__) from error


async def ask_each(
    keys: Iterable[str], call: Callable[[str], Awaitable[T]], limits: Limits, reason_if_late: str = "not asked in time"
) -> Answers[T]:
    """`call` for every key, a bounded number at once; what is not answered at the deadline counts as failed."""
    waiting = list(dict.fromkeys(keys))
    found: Answers[T] = Answers({}, {})
    upcoming = iter(waiting)

    async def work() -> None:
        for key in upcoming:  # shared by all workers: each takes the next one
            try:
                found.results[key] = await call(key)
            except SourceError as error:
                found.failures[key] = str(error)
            except Exception as error:  # noqa: BLE001 - whatever one endpoint does costs that endpoint alone
                found.failures[key] = f"{type(error).__name__}: {one_line(error)}"

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
    """Where nothing was answered the source has failed, not its parts."""
    if failures and len(failures) == len(set(keys)):
        key, reason = min(failures.items())
        raise SourceError(f"nothing was answered; {key}: {reason}")
