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

from joulie.lab.jobs import Numbers
from joulie.lab.trace_columns import Asked, backwards, jobs_of_asked, read_csv, refuse
from joulie.lab.trace_families import Profile
from joulie.lab.trace_jsonl import Read
from joulie.lab.trace_remarks import Remarks

WINDOW_S = 60.0
PROMPT_TOKENS_A_SECOND = 8_000.0
ANSWER_TOKENS_A_SECOND = 400.0
BUSIEST = 0.7
CORES = 8.0
PROFILE = Profile(0.4, 0.0, 0.5, 0.1, 0.2)


def read_azure(file: IO[bytes], origin: str, remarks: Remarks) -> Read:
    """All replicas are of class performance: somebody waits for the answer."""
    names = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
    rows = read_csv(file, origin, remarks, names, text=names[:1])
    good = np.ones(len(rows.lines), bool)
    for column, name in enumerate(names[1:]):
        bad = (rows.values[:, column] < 0) & good
        good &= refuse(bad, rows.lines, origin, name, "is negative", remarks)
    times_s = np.asarray([_time_s(text) for text in rows.texts[0]], float)
    good &= refuse(np.isnan(times_s) & good, rows.lines, origin, names[0], "is not a time", remarks)
    lines, times_s, values = rows.lines[good], times_s[good], rows.values[good]
    good = refuse(backwards(times_s), lines, origin, names[0], "time goes backwards", remarks)
    lines, times_s, values = lines[good], times_s[good], values[good]
    remarks.notes.append(
        f"{origin}: requests became replicas of one GPU; what one board can serve is an assumption of ours"
    )
    return _replicas(lines, times_s, values)


def _replicas(lines: NDArray[np.int64], times_s: Numbers, tokens: Numbers) -> Read:
    since_s = times_s - times_s[0] if len(times_s) else times_s
    window = (since_s // WINDOW_S).astype(np.int64)
    board_s = tokens[:, 0] / PROMPT_TOKENS_A_SECOND + tokens[:, 1] / ANSWER_TOKENS_A_SECOND
    asked_s = np.bincount(window, weights=board_s) if len(window) else np.zeros(0)
    needed = np.ceil(asked_s / (WINDOW_S * BUSIEST)).astype(np.int64)
    busy = np.divide(asked_s, needed * WINDOW_S, out=np.zeros(len(needed)), where=needed > 0)
    summed = np.concatenate([[0.0], np.cumsum(busy)])
    begins, ends, replicas = [], [], []
    for rank in range(int(needed.max(initial=0))):
        edges = np.diff(np.concatenate([[0], (needed > rank).astype(np.int8), [0]]))
        begin, end = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
        begins.append(begin)
        ends.append(end)
        replicas.append(np.full(len(begin), rank))
    empty = [np.zeros(0, np.int64)]
    begin, end, replica = (np.concatenate(part or empty) for part in (begins, ends, replicas))
    order = np.argsort(begin, kind="stable")
    begin, end, replica = begin[order], end[order], replica[order]
    count = len(begin)
    jobs = jobs_of_asked(
        Asked(
            submit_s=begin.astype(float) * WINDOW_S,
            duration_s=(end - begin).astype(float) * WINDOW_S,
            pods=np.ones(count, np.int64),
            cores=np.full(count, CORES),
            gpus=np.ones(count, np.int64),
            performance=np.ones(count, bool),
            cpu_utilisation=np.full(count, PROFILE.cpu_utilisation),
            gpu_utilisation=(summed[end] - summed[begin]) / np.maximum(end - begin, 1),
            ids=[f"replica-{number}-{first}" for number, first in zip(replica.tolist(), begin.tolist(), strict=True)],
        ),
        "inference",
        PROFILE,
    )
    return Read(jobs, lines[np.searchsorted(window, begin)] if count else lines[:0])


def _time_s(text: str) -> float:
    """Seconds since 1970 of `2023-11-16 18:17:03.9799600`; NaN for anything else."""
    whole, _, fraction = text.partition(".")
    try:
        begin = datetime.strptime(whole, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        return begin.timestamp() + (float(f"0.{fraction}") if fraction else 0.0)
    except ValueError:
        return float("nan")
