"""Metrics as every process of Joulie exports them: described once, for Prometheus and for the reference alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class Described(NamedTuple):
    """What the reference says of a metric."""

    name: str
    kind: str
    meaning: str
    labels: tuple[str, ...]


def head(name: str, kind: str, meaning: str) -> str:
    """The lines before a metric's series, where these are rendered as text."""
    return f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n"


def escaped(text: str) -> str:
    """A label's value."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


class Instruments:
    """Counters and the like of one process, whose names begin alike, and what they are called.

    prometheus-client is imported here and not with this module: an agent renders all of its series as text.
    """

    def __init__(self, prefix: str) -> None:
        from prometheus_client import CollectorRegistry

        self.registry: CollectorRegistry = CollectorRegistry()
        self.described: list[Described] = []
        self._prefix = prefix

    def counter(self, name: str, meaning: str, *labels: str) -> Counter:
        from prometheus_client import Counter

        self._describe(f"{name}_total", "counter", meaning, labels)
        return Counter(f"{self._prefix}_{name}", meaning, labels, registry=self.registry)

    def gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        from prometheus_client import Gauge

        self._describe(name, "gauge", meaning, labels)
        return Gauge(f"{self._prefix}_{name}", meaning, labels, registry=self.registry)

    def histogram(self, name: str, meaning: str, buckets: Sequence[float], *labels: str) -> Histogram:
        from prometheus_client import Histogram

        self._describe(name, "histogram", meaning, labels)
        return Histogram(f"{self._prefix}_{name}", meaning, labels, registry=self.registry, buckets=buckets)

    def page(self) -> bytes:
        """The text that a scrape gets of these."""
        from prometheus_client import generate_latest

        return generate_latest(self.registry)

    def _describe(self, name: str, kind: str, meaning: str, labels: tuple[str, ...]) -> None:
        self.described.append(Described(f"{self._prefix}_{name}", kind, meaning, labels))
