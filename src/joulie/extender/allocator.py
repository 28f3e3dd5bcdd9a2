"""The C library's allocator, told to keep what it once got.

A request of whole nodes is some 15 MB. By default glibc maps and unmaps such a block for each one, and the page faults
cost more than the answer (measured: 9,500 a request; with this none).
"""

from __future__ import annotations

import ctypes

# <malloc.h>
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
_KEEP_BYTES = 1 << 30
_TOP_PAD_BYTES = 64 << 20


def keep_memory() -> bool:
    """Tune the running process; False where the C library has no such switch (it works, only slower)."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    wanted = ((_M_MMAP_THRESHOLD, _KEEP_BYTES), (_M_TRIM_THRESHOLD, _KEEP_BYTES), (_M_TOP_PAD, _TOP_PAD_BYTES))
    taken = [mallopt(option, value) == 1 for option, value in wanted]
    return all(taken)
