"""What a command works on: settings, catalogue, plug-ins, and the objects of a live cluster or of files."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import click

from joulie import plugins
from joulie.catalogue.lookup import Catalogue
from joulie.cli.live import LiveCluster, read_live
from joulie.cli.options import ObjectSource
from joulie.cli.output import warn
from joulie.cluster.files import manifests
from joulie.control.cycle import decide
from joulie.control.plan import Plan
from joulie.control.policies import Policy
from joulie.errors import InputError
from joulie.model.api import PowerBudget
from joulie.model.snapshot import Pod, Snapshot
from joulie.physics.cooling import CoolingModel
from joulie.settings import DecisionSettings, OperatorSettings, ScoreSettings, load
from joulie.sources.catalogue_file import read_catalogue

STANDARD_INPUT = "-"


@dataclass(frozen=True)
class LoadedCluster:
    """A cluster as it was read, with everything needed to decide about it."""

    snapshot: Snapshot
    settings: DecisionSettings
    catalogue: Catalogue
    policy: Policy
    cooling: CoolingModel
    now_s: float
    live: LiveCluster | None = None  # None: read from files
    budgets: tuple[PowerBudget, ...] = ()
    unusable: str = ""  # why the running operator's settings could not be used

    @property
    def warnings(self) -> list[str]:
        """Caveats about what was decided here."""
        text = f"the running operator's settings are unusable here, so the local environment applies: {self.unusable}"
        return [text] if self.unusable else []

    @property
    def place(self) -> str:
        """Where a missing object was looked for."""
        return "in the files" if self.live is None else "in the cluster"

    @cached_property
    def plan(self) -> Plan:
        """The plan of `decide`; its warnings are printed once."""
        plan = self.decide(self.snapshot)
        warn(plan.warnings)
        return plan

    def decide(self, snapshot: Snapshot) -> Plan:
        """Like `plan`, for a modified snapshot."""
        return decide(
            snapshot, self.settings, self.now_s, policy=self.policy, cooling=self.cooling, catalogue=self.catalogue
        )

    @cached_property
    def score_settings(self) -> ScoreSettings:
        return load(ScoreSettings, os.environ)


def read_cluster(source: ObjectSource) -> LoadedCluster:
    """Reads settings before objects, so that an invalid setting is reported at once. Warnings go to standard error."""
    settings = _settings(source, os.environ)
    if source.filenames:
        loaded = manifests.read(source.filenames, sys.stdin.buffer)
        warn(loaded.warnings)
        return replace(_cluster(source, settings, loaded.snapshot, None), budgets=loaded.budgets)
    from joulie.cli.connection import on_connection

    live = on_connection(source.kubeconfig, source.context, read_live)
    warn(live.warnings)
    cluster = live_cluster(source, live)
    warn(cluster.warnings)
    return cluster


def live_cluster(source: ObjectSource, live: LiveCluster) -> LoadedCluster:
    """Uses the settings of the operator that runs there, unless the local environment overrides them.

    If these are unusable here, falls back to the local environment alone, so that there is still something to show.
    """
    own = _settings(source, os.environ)  # errors in these are the user's own
    if not source.now_is_given:  # compute ages by the API server's clock, which all writers share
        source = replace(source, now_s=source.now_s - live.ahead_s)
    try:
        together = {**live.operator_settings, **os.environ}
        load(OperatorSettings, together)
        return _cluster(source, _settings(source, together), live.snapshot, live)
    except InputError as error:
        if not live.operator_settings:
            raise
        alone = replace(live, operator_settings={})
        return replace(_cluster(source, own, live.snapshot, alone), unusable=str(error))


def _cluster(
    source: ObjectSource, settings: DecisionSettings, snapshot: Snapshot, live: LiveCluster | None
) -> LoadedCluster:
    catalogue = read_catalogue(settings.hardware.hardware_catalog_path if live is None else _own_catalogue())
    policy = _policy(source, settings)
    cooling = plugins.cooling(settings.twin.cooling_model, settings.twin)
    budgets = () if live is None else live.budgets
    return LoadedCluster(snapshot, settings, catalogue, policy, cooling, source.now_s, live, budgets)


def _own_catalogue() -> str:
    """The local one: a path in the operator's container means nothing here."""
    return load(DecisionSettings, os.environ).hardware.hardware_catalog_path


def read_pod(path: str) -> Pod:
    """The only pod of a file."""
    return manifests.read_pod(path, sys.stdin.buffer)


def find_pod(snapshot: Snapshot, wanted: str, place: str = "in the files") -> Pod:
    """The pod called `NAMESPACE/NAME`; the InputError suggests similar names."""
    for pod in snapshot.pods:
        if wanted == f"{pod.namespace}/{pod.name}":
            return pod
    names = [f"{pod.namespace}/{pod.name}" for pod in snapshot.pods]
    if "/" not in wanted:
        same = sorted(name for name in names if name.endswith(f"/{wanted}"))
        close = same[:3] or near_misses(wanted, names)
        raise InputError(f"pod {wanted!r} has no namespace: write NAMESPACE/NAME{close_to(close)}")
    raise InputError(f"pod {wanted!r} is not {place}{close_to(near_misses(wanted, names))}")


def near_misses(wanted: str, names: list[str]) -> list[str]:
    from difflib import get_close_matches

    return get_close_matches(wanted, names, n=3, cutoff=0.6)


def close_to(names: list[str]) -> str:
    """`; did you mean a, b or c?`, or nothing."""
    if not names:
        return ""
    *others, last = names
    return f"; did you mean {', '.join(others)} or {last}?" if others else f"; did you mean {last}?"


def _settings(source: ObjectSource, env: Mapping[str, str]) -> DecisionSettings:
    """The environment's settings, overridden by the options."""
    if source.policy is not None:
        env = {**env, "POLICY_TYPE": source.policy}
    settings = load(DecisionSettings, env)
    if source.selector is not None:
        settings = replace(settings, plan=replace(settings.plan, node_selector=source.selector))
    if source.ambient_c is not None:
        settings = replace(settings, twin=replace(settings.twin, ambient_c=source.ambient_c))
    return settings


def _policy(source: ObjectSource, settings: DecisionSettings) -> Policy:
    if source.policy is not None and source.policy not in (names := plugins.policy_names()):
        text = f"--policy {source.policy!r} is not installed; available: {', '.join(names)}"
        raise click.UsageError(text, click.get_current_context(silent=True))
    return plugins.policy(settings.plan.policy_type)


def warn_of_empty_scope(cluster: LoadedCluster) -> None:
    """Says on standard error why the plan is empty: that is not an error, but rarely what was wanted."""
    nodes = cluster.snapshot.nodes
    settings = cluster.settings.plan
    matching = [node for node in nodes.values() if settings.node_selector.matches(node.labels)]
    count = f"{len(nodes)} node{'s' * (len(nodes) != 1)}"
    if not nodes:
        reason = "the objects contain no Node"
    elif matching:
        reason = f"all nodes that the selector matches ({len(matching)} of {count}) are reserved or cordoned"
    else:
        reason = (
            f"the selector {settings.node_selector.text!r} matches none of {count}; to plan all nodes: --selector ''"
        )
    click.echo(f"joulie: {reason}", err=True)
