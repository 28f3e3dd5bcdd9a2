"""What every test shares: how thoroughly hypothesis searches, and which tests start first.

The same commit always tries the same examples, so that a red build can be repeated. To search for new ones:
`pytest --hypothesis-profile=explore`.
"""

import signal
import threading

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = [
    "tests.support.browser",
    "tests.support.control_plane",
    "tests.support.prometheus_server",
    "tests.support.released",
]

_PATIENT = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("default", _PATIENT)
settings.register_profile("fast", _PATIENT, max_examples=15)
settings.register_profile("explore", _PATIENT, derandomize=False, max_examples=5_000, print_blob=True)
settings.load_profile("default")

# Started in the background of a script, a process ignores Ctrl-C, and so would every process that the tests interrupt.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

FIRST_GROUP = "node"


@pytest.hookimpl(trylast=True)  # when all groups are known
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest first: a long group that starts last would leave the other processes idle."""
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    group = item.get_closest_marker("xdist_group")
    if group is not None:
        return 0 if group.args == (FIRST_GROUP,) else 1
    return 2 if item.get_closest_marker("slow") else 3
