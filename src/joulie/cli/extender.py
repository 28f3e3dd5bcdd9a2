"""`joulie extender`: answer kube-scheduler, from a live cluster or from files."""

from __future__ import annotations

import os
import sys
from functools import partial

import click

from joulie.cli.live import on_cluster, read_objects
from joulie.cli.options import kubeconfig_options, log_level_option, now_option
from joulie.errors import InputError

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
    import time

    from joulie.cluster.watch_log import ContactLog
    from joulie.extender.process import Extender, run
    from joulie.logs import start_logging
    from joulie.settings import ExtenderSettings, load
    from joulie.sources.catalogue_file import read_catalogue

    if now is not None and not filenames:
        raise InputError("--now goes with --from: a live cluster has its own time")
    if filenames and (kubeconfig or context):
        raise InputError("--from serves files; --kubeconfig and --context name a cluster: give one or the other")
    start_logging(log_level)
    settings = load(ExtenderSettings, os.environ)
    clock = time.time if now is None else lambda: now
    extender = Extender(settings, read_catalogue(settings.hardware.hardware_catalog_path), clock)
    contact = ContactLog("extender")
    if filenames:
        import asyncio

        extender.state.load(read_objects(filenames))
        sys.exit(asyncio.run(run(extender, settings, None, contact)))

    from joulie.cluster.backoff import Backoff

    # A scheduler that waits for news after an outage waits for these watches.
    work = partial(run, extender, settings, watch_log=contact)
    sys.exit(on_cluster(kubeconfig, context, contact, work, backoff=lambda: Backoff(0.25, 5.0)))
