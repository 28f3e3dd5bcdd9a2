"""What a command works on: settings from the environment, the catalogue, plug-ins, and the objects of the files."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import click

from joulie import plugins
from joulie.catalogue.lookup import Catalogue
from joulie.cli.live import Live, read_live
from joulie.cli.options import Source
from joulie.cli.output import warn
from joulie.cluster import manifests
from joulie.control.cycle import decide
from joulie.control.plan import Plan
from joulie.control.policies import Policy
from joulie.errors import InputError
from joulie.model.snapshot import Pod, Snapshot
from joulie.physics.cooling import CoolingModel
from joulie.settings import DecisionSettings, OperatorSettings, ScoreSettings, load
from joulie.sources.catalogue_file import read_catalogue

STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Cluster:
    """A cluster as it was read, with everything that a decision about it needs."""

    snapshot: Snapshot
    settings: DecisionSettings
    catalogue: Catalogue
    policy: Policy
    cooling: CoolingModel
    now_s: float
    live: Live | None = None  # None: from files
    unusable: str = ""  # why the settings of the operator that runs there are not those here

    @property
    def warnings(self) -> list[str]:
        """What a person should know before believing what was decided here."""
        said = f"the operator's own settings cannot be used here, so those of this environment are: {self.unusable}"
        return [said] if self.unusable else []

    @property
    def place(self) -> str:
        """Where an object would be that is not there."""
        return "in the files" if self.live is None else "in the cluster"

    @cached_property
    def plan(self) -> Plan:
        """What `decide` makes of it; its warnings are shown once."""
        plan = self.decide(self.snapshot)
        warn(plan.warnings)
        return plan

    def decide(self, snapshot: Snapshot) -> Plan:
        """Like `plan`, for a cluster that differs in something."""
        return decide(
            snapshot, self.settings, self.now_s, policy=self.policy, cooling=self.cooling, catalogue=self.catalogue
        )

    @cached_property
    def score_settings(self) -> ScoreSettings:
        return load(ScoreSettings, os.environ)


def read_cluster(source: Source) -> Cluster:
    """Settings first, then objects, so that a wrong setting is said at once. Warnings go to standard error."""
    settings = _settings(source, os.environ)
    if source.filenames:
        loaded = manifests.read(source.filenames, sys.stdin.buffer)
        warn(loaded.warnings)
        return _cluster(source, settings, loaded.snapshot, None)
    from joulie.cli.connection import on_connection

    live = on_connection(source.kubeconfig, source.context, read_live)
    warn(live.warnings)
    cluster = live_cluster(source, live)
    warn(cluster.warnings)
    return cluster


def live_cluster(source: Source, live: Live) -> Cluster:
    """With the settings of the operator that runs there, where the person's own environment does not say otherwise.

    Where these cannot be used, here or anywhere, there is still something to see: with the person's own alone.
    """
    own = _settings(source, os.environ)  # a fault of these is the person's
    try:
        together = {**live.operator_settings, **os.environ}
        load(OperatorSettings, together)
        return _cluster(source, _settings(source, together), live.snapshot, live)
    except InputError as error:
        if not live.operator_settings:
            raise
        alone = replace(live, operator_settings={})
        return replace(_cluster(source, own, live.snapshot, alone), unusable=str(error))


def _cluster(source: Source, settings: DecisionSettings, snapshot: Snapshot, live: Live | None) -> Cluster:
    catalogue = read_catalogue(settings.hardware.hardware_catalog_path if live is None else _own_catalogue())
    policy = _policy(source, settings)
    cooling = plugins.cooling(settings.twin.cooling_model, settings.twin)
    return Cluster(snapshot, settings, catalogue, policy, cooling, source.now_s, live)


def _own_catalogue() -> str:
    """A path in the operator's container is none here."""
    return load(DecisionSettings, os.environ).hardware.hardware_catalog_path


def read_pod(path: str) -> Pod:
    """The one pod of a file."""
    return manifests.read_pod(path, sys.stdin.buffer)


def find_pod(snapshot: Snapshot, wanted: str, place: str = "in the files") -> Pod:
    """The pod called `NAMESPACE/NAME`; InputError with what comes near it."""
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


def _settings(source: Source, env: Mapping[str, str]) -> DecisionSettings:
    """The environment's settings with what the options override."""
    if source.policy is not None:
        env = {**env, "POLICY_TYPE": source.policy}
    settings = load(DecisionSettings, env)
    if source.selector is not None:
        settings = replace(settings, plan=replace(settings.plan, node_selector=source.selector))
    if source.ambient_c is not None:
        settings = replace(settings, twin=replace(settings.twin, ambient_c=source.ambient_c))
    return settings


def _policy(source: Source, settings: DecisionSettings) -> Policy:
    if source.policy is not None and source.policy not in (names := plugins.policy_names()):
        said = f"--policy {source.policy!r} is not installed: there are {', '.join(names)}"
        raise click.UsageError(said, click.get_current_context(silent=True))
    return plugins.policy(settings.plan.policy_type)
