"""`joulie extender`: answer kube-scheduler, based on a live cluster or on files."""

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
  joulie extender                                   serve the cluster that kubectl would use
  joulie extender --from cluster.yaml               serve objects from files, to try requests by hand
  curl -s localhost:9877/debug/scoring?format=table
  curl -s 'localhost:9877/debug/scoring?pod=default/train&format=table'

\b
Settings are environment variables: joulie config extender
kube-scheduler's configuration is in deploy/scheduler, the permissions in deploy/rbac/extender.yaml, and
the admission policy that protects performance pods even without the extender in deploy/admission.
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--from",
    "filenames",
    multiple=True,
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="Serve the objects of these files instead of a cluster: YAML, JSON, a folder or -; repeatable.",
)
@now_option
@kubeconfig_options
@log_level_option
def command(filenames: tuple[str, ...], now: float | None, kubeconfig: str, context: str, log_level: str) -> None:
    """Filter and score nodes for kube-scheduler.

    Keeps performance pods off eco and draining nodes, and scores every node by its digital twin: power headroom with
    the pod on it, cooling and trend. It watches the cluster and answers from memory. Replicas are independent.
    """
    import time

    from joulie.cluster.watch.log import ContactLog
    from joulie.extender.process import Extender, run
    from joulie.logs import start_logging
    from joulie.settings import ExtenderSettings, load
    from joulie.sources.catalogue_file import read_catalogue

    if now is not None and not filenames:
        raise InputError("--now needs --from: a live cluster has its own time")
    if filenames and (kubeconfig or context):
        raise InputError("--from cannot be combined with --kubeconfig or --context")
    start_logging(log_level)
    settings = load(ExtenderSettings, os.environ)
    clock = time.time if now is None else lambda: now
    extender = Extender(settings, read_catalogue(settings.hardware.hardware_catalog_path), clock)
    contact = ContactLog("extender")
    if filenames:
        import asyncio

        loaded = read_objects(filenames)
        extender.state.load(loaded.snapshot, loaded.budgets)
        sys.exit(asyncio.run(run(extender, settings, None, contact)))

    from joulie.cluster.watch.backoff import Backoff

    # After an outage, pods wait for these watches to catch up.
    work = partial(run, extender, settings, watch_log=contact)
    sys.exit(on_cluster(kubeconfig, context, contact, "joulie-extender", work, backoff=lambda: Backoff(0.25, 5.0)))
