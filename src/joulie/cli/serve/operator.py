"""`joulie operator`: plan a live cluster and write the result, once or continuously."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from joulie.cli.options import filename_option, kubeconfig_options, log_level_option
from joulie.errors import InputError

if TYPE_CHECKING:
    from joulie.operator.loop import DecisionModels
    from joulie.operator.writes import Write
    from joulie.settings import OperatorSettings

_EPILOG = """\b
Examples:
  joulie operator --once --dry-run            what it would write to this cluster now
  joulie operator --once                      decide and write once
  joulie operator                             run until stopped; a lease elects one of several
  joulie operator --once --dry-run -f cluster.yaml

\b
Settings are environment variables: joulie config operator
Needed in the cluster: joulie crds | kubectl apply -f -, and the permissions in deploy/rbac/operator.yaml
"""


@click.command(epilog=_EPILOG)
@click.option("--once", is_flag=True, help="Decide once and exit.")
@click.option("--dry-run", is_flag=True, help="Print the writes as JSON lines instead of making them; needs --once.")
@filename_option
@kubeconfig_options
@click.option(
    "--namespace",
    default="joulie-system",
    show_default=True,
    envvar="POD_NAMESPACE",
    help="The namespace of the lease.",
)
@log_level_option
def command(
    once: bool, dry_run: bool, filenames: tuple[str, ...], kubeconfig: str, context: str, namespace: str, log_level: str
) -> None:
    """Decide which nodes run at full power and which are capped, and write the result.

    Watches the cluster, decides every RECONCILE_INTERVAL, and writes only what changed: one NodeTwin per node, two
    node labels, and an Event for each change of state. Of several operators only the leader acts; another one takes
    over when it stops.
    """
    if dry_run and not once:
        raise InputError("--dry-run needs --once: joulie operator --once --dry-run")
    if filenames and not dry_run:
        raise InputError("-f needs --once --dry-run: files cannot be written to")
    from joulie.logs import start_logging
    from joulie.settings import OperatorSettings, load

    start_logging(log_level)
    settings = load(OperatorSettings, os.environ)
    models = _models(settings)
    if filenames:
        _from_files(filenames, settings, models)
        return
    sys.exit(_on_cluster(settings, models, kubeconfig, context, namespace, once=once, dry_run=dry_run))


def _models(settings: OperatorSettings) -> DecisionModels:
    from joulie import plugins
    from joulie.operator.loop import DecisionModels
    from joulie.sources.catalogue_file import read_catalogue

    decision = settings.decision
    return DecisionModels(
        plugins.policy(decision.plan.policy_type),
        plugins.cooling(decision.twin.cooling_model, decision.twin),
        read_catalogue(decision.hardware.hardware_catalog_path),
    )


def _from_files(filenames: tuple[str, ...], settings: OperatorSettings, models: DecisionModels) -> None:
    """Prints the writes that a cluster with these objects would get."""
    import time

    from joulie.cli.output import warn
    from joulie.cluster.files import manifests
    from joulie.control.cycle import decide
    from joulie.operator.profile_status import pin_jobs
    from joulie.operator.writes import all_jobs

    loaded = manifests.read(filenames, sys.stdin.buffer)
    now_s = time.time()
    plan = decide(
        loaded.snapshot,
        settings.decision,
        now_s,
        policy=models.policy,
        cooling=models.cooling,
        catalogue=models.catalogue,
    )
    warn([*loaded.warnings, *plan.warnings])
    snapshot = loaded.snapshot
    twins = all_jobs(plan, snapshot.nodes, snapshot.twins, settings, now_s)
    for job in [*twins, *pin_jobs(plan, snapshot.pins, snapshot.nodes, snapshot.twins, now_s)]:
        for write in job.writes:
            _show(write)


def _on_cluster(
    settings: OperatorSettings,
    models: DecisionModels,
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

    from joulie.cli.serve.operator_dashboard import dashboard_for
    from joulie.cluster.api.cluster import KubernetesCluster
    from joulie.cluster.api.credentials import find_credentials
    from joulie.cluster.lease.election import unique_identity
    from joulie.cluster.watch.log import WatchLog
    from joulie.model.names import OPERATOR_MANAGER
    from joulie.operator.process import Candidate, run, run_once

    credentials = find_credentials(os.environ, kubeconfig=kubeconfig, context=context, home=Path.home())
    candidate = Candidate(unique_identity(os.environ.get("POD_NAME") or socket.gethostname()), namespace)

    async def main() -> int:
        watch_log = WatchLog("operator")
        cluster = KubernetesCluster(
            credentials, field_manager=OPERATOR_MANAGER, observer=watch_log, unknown_kinds_are_empty=dry_run
        )
        election = KubernetesCluster(credentials, field_manager=OPERATOR_MANAGER)
        try:
            if once:
                return await run_once(cluster, settings, models, candidate, _show if dry_run else None)
            attach = dashboard_for(settings, models, candidate.identity) if settings.dashboard else None
            return await run(cluster, election, settings, models, candidate, watch_log, attach=attach)
        finally:
            await cluster.close()
            await election.close()

    return asyncio.run(main())


def _show(write: Write) -> None:
    """Prints a write as one JSON line on standard output."""
    import msgspec

    line = {
        "verb": write.verb,
        "resource": write.resource.plural,
        "name": write.name,
        "subresource": "status" if write.status else None,
        "patch": write.body or None,
    }
    click.echo(msgspec.json.encode(line).decode())
