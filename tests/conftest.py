"""What every test shares: how thoroughly hypothesis searches.

The same commit always tries the same examples, so that a red build can be repeated. To search for new ones:
`pytest --hypothesis-profile=explore`.
"""

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.control_plane", "tests.prometheus_server"]

_PATIENT = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("default", _PATIENT)
settings.register_profile("fast", _PATIENT, max_examples=15)
settings.register_profile("explore", _PATIENT, derandomize=False, max_examples=5_000, print_blob=True)
settings.load_profile("default")
