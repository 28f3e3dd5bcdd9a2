"""Requests to a language model (Azure LLM inference traces): comma-separated `TIMESTAMP,ContextTokens,GeneratedTokens`.

Requests become the pods that serve them. In each minute the tokens that came are so many GPU-seconds, and so many
replicas of one GPU are needed that none is busy above 70 %. The k-th replica is a job that comes when k are needed,
runs as long as they are, and is as busy as the replicas were on average. How many tokens a second one H100 SXM
processes (prompts 8,000, answers 400; batched, a model that fits one board) is an assumption, not part of the trace.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import IO

import numpy as np
from numpy.typing import NDArray

from joulie.errors import InputError
from joulie.lab.model.jobs import Numbers
from joulie.lab.traces.blocks import Blocks
from joulie.lab.traces.formats.columns import LATEST_S, MAX_PODS, read_csv, refuse, refuse_times
from joulie.lab.traces.formats.jsonl import Read
from joulie.lab.traces.formats.replicas import BUSIEST, WINDOW_S, replicas_of
from joulie.lab.traces.remarks import Remarks

PROMPT_TOKENS_A_SECOND = 8_000.0
ANSWER_TOKENS_A_SECOND = 400.0
MAX_TOKENS = 10_000_000  # of a request: no model takes more at once


def read_azure(file: IO[bytes], origin: str, remarks: Remarks, blocks: Blocks | None = None) -> Read:
    """All replicas are of class performance: users wait for the answer. Blocks are drawn of requests: a replica
    that runs all the time belongs to none.
    """
    names = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
    rows = read_csv(file, origin, remarks, names, text=names[:1])
    good = np.ones(len(rows.lines), bool)
    for column, name in enumerate(names[1:]):
        tokens = rows.values[:, column]
        good &= refuse((tokens < 0) & good, rows.lines, origin, name, "is negative", remarks)
        above = f"is above {MAX_TOKENS:,} tokens"
        good &= refuse((tokens > MAX_TOKENS) & good, rows.lines, origin, name, above, remarks)
    times_s = np.asarray([_time_s(text) for text in rows.texts[0]], float)
    far = (times_s < 0) | (times_s > LATEST_S)
    good &= refuse(far & good, rows.lines, origin, names[0], "is not between 1970 and 2286", remarks)
    good &= refuse(np.isnan(times_s) & good, rows.lines, origin, names[0], "is not a time", remarks)
    lines, times_s, values = rows.lines[good], times_s[good], rows.values[good]
    good = refuse_times(times_s, lines, origin, names[0], remarks)
    lines, times_s, values = lines[good], times_s[good], values[good]
    if blocks is not None and (drawn := blocks.draw(times_s, origin, remarks)) is not None:
        lines, times_s, values = lines[drawn.row], drawn.time_s, values[drawn.row]
    remarks.notes.append(
        f"{origin}: requests became replicas of one GPU; what one board can serve is an assumption of ours"
    )
    return _replicas(lines, times_s, values, origin)


def _replicas(lines: NDArray[np.int64], times_s: Numbers, tokens: Numbers, origin: str) -> Read:
    since_s = times_s - times_s[:1]
    window = (since_s // WINDOW_S).astype(np.int64)
    board_s = tokens[:, 0] / PROMPT_TOKENS_A_SECOND + tokens[:, 1] / ANSWER_TOKENS_A_SECOND
    asked_s = np.bincount(window, weights=board_s) if len(window) else np.zeros(0)
    needed = np.ceil(asked_s / (WINDOW_S * BUSIEST)).astype(np.int64)
    many = np.cumsum(np.maximum(np.diff(needed, prepend=0), 0)) > MAX_PODS
    if many.any():
        line = lines[np.searchsorted(window, np.argmax(many))]
        raise InputError(f"{origin}:{line}: GeneratedTokens: in its minute more than {MAX_PODS:,} replicas are reached")
    jobs, begin = replicas_of(needed, np.asarray(asked_s, np.float64))
    return Read(jobs, lines[np.searchsorted(window, begin)] if len(begin) else lines[:0])


def _time_s(text: str) -> float:
    """Seconds since 1970 of `2023-11-16 18:17:03.9799600`; NaN for anything else."""
    whole, _, fraction = text.partition(".")
    if fraction and not (fraction.isascii() and fraction.isdecimal()):
        return float("nan")
    try:
        begin = datetime.strptime(whole, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        return begin.timestamp() + (int(fraction) / 10 ** len(fraction) if fraction else 0.0)
    except ValueError:
        return float("nan")
