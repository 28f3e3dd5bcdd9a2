"""What the API server says it was asked: its own counters, so that nothing about a client has to be believed."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

_SAMPLE = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class Request(NamedTuple):
    """One kind of request: `Request("PATCH", "nodetwins", "status")`. A WATCH is counted when it ends."""

    verb: str
    resource: str
    subresource: str = ""


def requests_seen(metrics: str) -> Counter[Request]:
    """Number of requests of each kind, of all clients and answer codes together. Subtract two to see what happened."""
    counts: Counter[Request] = Counter()
    for labels, value in _SAMPLE.findall(metrics):
        label = dict(_LABEL.findall(labels))
        counts[Request(label["verb"], label["resource"], label["subresource"])] += round(float(value))
    return counts
