"""CPU power from Prometheus, for a node whose TelemetryProfile says so. Its client is loaded only then."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from joulie.agent.routing import PowerRoute
from joulie.agent.wiring import ReadPower
from joulie.devices.http_client import HttpClient

MAX_AGE_S = 120.0  # as POWER_MAX_AGE: what is older says nothing of now


def prometheus_reader(http: HttpClient) -> Callable[[PowerRoute], ReadPower]:
    """Readers for routes; the series that answer a query are added up."""

    def reader(route: PowerRoute) -> ReadPower:
        from joulie.sources.prometheus import PrometheusClient
        from joulie.sources.transport import SourceError

        client: PrometheusClient | None = None

        async def read() -> float | None:
            nonlocal client
            if client is None:
                client = PrometheusClient(http.session(), route.endpoint, route.timeout_s)
            try:
                samples = await client.query(route.query, time.time(), MAX_AGE_S)
            except SourceError:
                return None
            return math.fsum(sample.value for sample in samples) if samples else None

        return read

    return reader
