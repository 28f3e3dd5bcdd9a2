"""Where a process of Joulie finds its objects: a live cluster as kubectl finds it, or files."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from joulie.cluster.kubernetes import KubernetesCluster
    from joulie.cluster.observer import ClusterObserver
    from joulie.model.snapshot import Snapshot


def on_cluster(
    kubeconfig: str,
    context: str,
    observer: ClusterObserver,
    work: Callable[[KubernetesCluster], Awaitable[int]],
    **options: Any,
) -> int:
    """The exit code of work that has a connection to the cluster for as long as it lasts."""
    import asyncio
    from pathlib import Path

    from joulie.cluster.credentials import find_credentials
    from joulie.cluster.kubernetes import KubernetesCluster

    credentials = find_credentials(os.environ, kubeconfig=kubeconfig, context=context, home=Path.home())

    async def connected() -> int:
        cluster = KubernetesCluster(credentials, observer=observer, **options)
        try:
            return await work(cluster)
        finally:
            await cluster.close()

    return asyncio.run(connected())


def read_objects(filenames: tuple[str, ...]) -> Snapshot:
    """What the files say; what they say wrongly is warned of on standard error."""
    from joulie.cli.output import warn
    from joulie.cluster import manifests

    loaded = manifests.read(filenames, sys.stdin.buffer)
    warn(loaded.warnings)
    return loaded.snapshot
