"""`joulie extender`: answer kube-scheduler, from a live cluster or from files."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from joulie.cli.options import kubeconfig_options, log_level_option, now_option
from joulie.errors import InputError

if TYPE_CHECKING:
    from joulie.extender.process import Extender

_EPILOG = """\b
Examples:
  joulie extender                                   serve the cluster that kubectl talks to
  joulie extender --from cluster.yaml               serve what files say, to try requests by hand
  curl -s localhost:9877/debug/scoring?format=table
  curl -s 'localhost:9877/debug/scoring?pod=default/train&format=table'

\b
Settings are environment variables: joulie config extender
For kube-scheduler: deploy/scheduler; the rights in deploy/rbac/extender.yaml; the guarantee that
holds without the extender in deploy/admission.
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--from",
    "filenames",
    multiple=True,
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="Serve the objects of these files instead of a cluster's: YAML, JSON, a folder or - (repeatable).",
)
@now_option
@kubeconfig_options
@log_level_option
def command(filenames: tuple[str, ...], now: float | None, kubeconfig: str, context: str, log_level: str) -> None:
    """Answer kube-scheduler: which nodes a pod may use, and what each is worth.

    Performance pods are kept off eco and draining nodes; every node gets a score from its digital twin: power headroom
    with the pod on it, cooling, trend. It watches the cluster and answers from memory. Several may run side by side.
    """
    import asyncio
    import time

    from joulie.extender.process import Extender, ExtenderWatchLog, run
    from joulie.logs import start_logging
    from joulie.settings import ExtenderSettings, load
    from joulie.sources.catalogue_file import read_catalogue

    if now is not None and not filenames:
        raise InputError("--now goes with --from: a live cluster has its own time")
    start_logging(log_level)
    settings = load(ExtenderSettings, os.environ)
    clock = time.time if now is None else lambda: now
    extender = Extender(settings, read_catalogue(settings.hardware.hardware_catalog_path), clock)
    if filenames:
        _load(extender, filenames)
        sys.exit(asyncio.run(run(extender, settings, None, ExtenderWatchLog())))

    from pathlib import Path

    from joulie.cluster.backoff import Backoff
    from joulie.cluster.credentials import find_credentials
    from joulie.cluster.kubernetes import KubernetesCluster

    credentials = find_credentials(os.environ, kubeconfig=kubeconfig, context=context, home=Path.home())

    async def main() -> int:
        watch_log = ExtenderWatchLog()
        # A scheduler that waits for news after an outage waits for these watches.
        cluster = KubernetesCluster(credentials, observer=watch_log, backoff=lambda: Backoff(0.25, 5.0))
        try:
            return await run(extender, settings, cluster, watch_log)
        finally:
            await cluster.close()

    sys.exit(asyncio.run(main()))


def _load(extender: Extender, filenames: tuple[str, ...]) -> None:
    from joulie.cli.output import warn
    from joulie.cluster import manifests

    loaded = manifests.read(filenames, sys.stdin.buffer)
    warn(loaded.warnings)
    extender.state.load(loaded.snapshot)
