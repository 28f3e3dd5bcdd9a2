"""`joulie operator`: decide for a live cluster and write it, once or for ever."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from joulie.cli.options import filename_option, kubeconfig_options, log_level_option
from joulie.errors import InputError

if TYPE_CHECKING:
    from joulie.operator.loop import Brain
    from joulie.operator.writes import Write
    from joulie.settings import OperatorSettings

_EPILOG = """\b
Examples:
  joulie operator --once --dry-run            what it would write to this cluster now
  joulie operator --once                      decide and write once
  joulie operator                             run until stopped; several share the work by a lease
  joulie operator --once --dry-run -f cluster.yaml

\b
Settings are environment variables: joulie config operator
Needed in the cluster: joulie crds | kubectl apply -f -, and the rights in deploy/rbac/operator.yaml
"""


@click.command(epilog=_EPILOG)
@click.option("--once", is_flag=True, help="Decide once and end.")
@click.option("--dry-run", is_flag=True, help="Print the writes as JSON lines instead of making them; with --once.")
@filename_option
@kubeconfig_options
@click.option(
    "--namespace", default="joulie-system", show_default=True, envvar="POD_NAMESPACE", help="Where the lease lies."
)
@log_level_option
def command(
    once: bool, dry_run: bool, filenames: tuple[str, ...], kubeconfig: str, context: str, namespace: str, log_level: str
) -> None:
    """Decide which nodes run at full power and which are capped, and write it.

    It watches the cluster, decides on every RECONCILE_INTERVAL, and writes only what changed: one NodeTwin a node,
    two node labels, and an Event for each change of state. Of several operators one acts; another takes over when
    it ends.
    """
    if dry_run and not once:
        raise InputError("--dry-run goes with --once: joulie operator --once --dry-run")
    if filenames and not dry_run:
        raise InputError("-f goes with --once --dry-run: files cannot be written to")
    from joulie.logs import start_logging
    from joulie.settings import OperatorSettings, load

    start_logging(log_level)
    settings = load(OperatorSettings, os.environ)
    brain = _brain(settings)
    if filenames:
        _from_files(filenames, settings, brain)
        return
    sys.exit(_on_cluster(settings, brain, kubeconfig, context, namespace, once=once, dry_run=dry_run))


def _brain(settings: OperatorSettings) -> Brain:
    from joulie import plugins
    from joulie.operator.loop import Brain
    from joulie.sources.catalogue_file import read_catalogue

    decision = settings.decision
    return Brain(
        plugins.policy(decision.plan.policy_type),
        plugins.cooling(decision.twin.cooling_model, decision.twin),
        read_catalogue(decision.hardware.hardware_catalog_path),
    )


def _from_files(filenames: tuple[str, ...], settings: OperatorSettings, brain: Brain) -> None:
    """The writes that a cluster with these objects would get."""
    import time

    from joulie.cli.output import warn
    from joulie.cluster import manifests
    from joulie.control.cycle import decide
    from joulie.operator.writes import all_jobs

    loaded = manifests.read(filenames, sys.stdin.buffer)
    now_s = time.time()
    plan = decide(
        loaded.snapshot,
        settings.decision,
        now_s,
        policy=brain.policy,
        cooling=brain.cooling,
        catalogue=brain.catalogue,
    )
    warn([*loaded.warnings, *plan.warnings])
    for job in all_jobs(plan, loaded.snapshot.nodes, loaded.snapshot.twins, settings, now_s):
        for write in job.writes:
            _show(write)


def _on_cluster(
    settings: OperatorSettings,
    brain: Brain,
    kubeconfig: str,
    context: str,
    namespace: str,
    *,
    once: bool,
    dry_run: bool,
) -> int:
    import asyncio
    import socket
    from pathlib import Path

    from joulie.cli.operator_dashboard import beside
    from joulie.cluster.credentials import find_credentials
    from joulie.cluster.kubernetes import KubernetesCluster
    from joulie.cluster.lease import unique_identity
    from joulie.cluster.watch_log import WatchLog
    from joulie.operator.process import Place, run, run_once

    credentials = find_credentials(os.environ, kubeconfig=kubeconfig, context=context, home=Path.home())
    place = Place(unique_identity(os.environ.get("POD_NAME") or socket.gethostname()), namespace)

    async def main() -> int:
        watch_log = WatchLog("operator")
        cluster = KubernetesCluster(credentials, observer=watch_log)
        election = KubernetesCluster(credentials)
        try:
            if once:
                return await run_once(cluster, settings, brain, place, _show if dry_run else None)
            attach = beside(settings, brain, place.identity) if settings.dashboard else None
            return await run(cluster, election, settings, brain, place, watch_log, attach=attach)
        finally:
            await cluster.close()
            await election.close()

    return asyncio.run(main())


def _show(write: Write) -> None:
    """One write as one JSON line on standard output."""
    import msgspec

    line = {
        "verb": write.verb,
        "resource": write.resource.plural,
        "name": write.name,
        "subresource": "status" if write.status else None,
        "patch": write.body or None,
    }
    click.echo(msgspec.json.encode(line).decode())
