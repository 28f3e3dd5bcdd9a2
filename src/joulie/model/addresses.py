"""Names of devices by their addresses, as they may be shown. Pure."""

from __future__ import annotations

import hashlib

from joulie.errors import CREDENTIALS, QUERY


def device_name(address: str) -> str:
    """One name for what an address leads to: the same after a change of password, and safe to show.

    Addresses that differ in their query lead to different devices, so a digest stands for it.
    """
    bare = CREDENTIALS.sub("", address)
    found = QUERY.search(bare)
    if found is None:
        return bare
    digest = hashlib.sha256(found[0].encode()).hexdigest()[:8]
    return f"{bare[: found.start()]}?…{digest}"
