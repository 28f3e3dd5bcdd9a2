"""Fixtures of the tests with a real Prometheus."""

from tests.support.prometheus_server import start_prometheus

__all__ = ["start_prometheus"]
