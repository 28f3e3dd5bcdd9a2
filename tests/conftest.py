"""What every test shares: how thoroughly hypothesis searches.

The same commit always tries the same examples, so that a red build can be repeated. To search for new ones:
`pytest --hypothesis-profile=explore`.
"""

import signal
import threading

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.browser", "tests.control_plane", "tests.prometheus_server"]

_PATIENT = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("default", _PATIENT)
settings.register_profile("fast", _PATIENT, max_examples=15)
settings.register_profile("explore", _PATIENT, derandomize=False, max_examples=5_000, print_blob=True)
settings.load_profile("default")

# Started in the background of a script, a process ignores Ctrl-C, and so would every process that the tests interrupt.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
