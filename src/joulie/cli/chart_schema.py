"""`values.schema.json` of the Helm chart, by which Helm refuses values that mean nothing."""

from __future__ import annotations

import json
from typing import Any

from joulie.cli.chart_settings import chart_settings

Schema = dict[str, Any]

_DURATION = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"


def values_schema() -> str:
    """The schema as the file holds it."""
    return json.dumps(_schema(), indent=2, ensure_ascii=False) + "\n"


def _schema() -> Schema:
    settings = chart_settings()
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the chart joulie",
        "description": "Generated from src/joulie/cli/chart_schema.py and the settings; after a change: make generate",
        **_object(
            {
                "global": {"type": "object", "description": "Helm's own; not used."},
                "image": _image(),
                "imagePullSecrets": _list("Secrets to pull the image with.", {"type": "object"}),
                "dryRun": _flag("Decide and report, write to no device. The first step to production."),
                "managedNodes": _text("Nodes that Joulie may cap, as a label selector; empty takes all."),
                "settings": _settings(settings["shared"], "Settings that several components share."),
                "hardwareCatalogue": _text("More CPUs and GPUs for the catalogue, as TOML."),
                "logLevel": _choice("How much the logs say.", "debug", "info", "warning", "error"),
                "operator": _component("Decides and writes twins.", settings["operator"], _replicas()),
                "agent": _agent(settings["agent"]),
                "extender": _component(
                    "Answers kube-scheduler.",
                    settings["extender"],
                    _replicas(),
                    tls=_object({"secretName": _text("A Secret of type kubernetes.io/tls; empty serves HTTP.")}),
                ),
                "scheduler": _component(
                    "A second kube-scheduler, for pods with schedulerName: joulie-scheduler.",
                    None,
                    _replicas(),
                    image=_text("The image of your cluster's own kube-scheduler."),
                ),
                "simulator": _component("Hardware that does not exist.", settings["simulator"]),
                "performanceAffinity": _object(
                    {"enabled": _flag("Add a MutatingAdmissionPolicy where the API server serves it.")},
                    "Keeps performance pods off eco nodes by kube-scheduler's own rules.",
                ),
                "monitoring": _monitoring(),
                "networkPolicy": _object(
                    {
                        "enabled": _flag("Let in what each component serves and nothing else."),
                        "metricsFrom": _list(
                            "Who may read metrics and dashboard; empty: everybody.", {"type": "object"}
                        ),
                    }
                ),
                "cleanup": _object(
                    {
                        "enabled": _flag("Restore nodes before an uninstall."),
                        "timeout": {**_text("How long to wait for agents to put back."), "pattern": _DURATION},
                        "resources": {"type": "object"},
                    },
                    "The job that runs before helm uninstall removes anything.",
                ),
            }
        ),
    }


def _image() -> Schema:
    return _object(
        {
            "repository": {**_text("Where the image is, with the registry in front."), "minLength": 1},
            "tag": _text("The version; empty: the chart's."),
            "digest": {**_text("sha256:…, wins over the tag."), "pattern": "^(sha256:[0-9a-f]{64})?$"},
            "pullPolicy": _choice("When to pull.", "Always", "IfNotPresent", "Never"),
        },
        "The image of operator, agent, extender and simulator.",
    )


def _agent(settings: dict[str, dict[str, Any]]) -> Schema:
    return _component(
        "Turns targets into power caps.",
        settings,
        mode=_choice("On every node for its own devices, or a few for many nodes over HTTP.", "daemonset", "pool"),
        nvidia=_object(
            {
                "enabled": _flag("Add the capability SYS_ADMIN, which NVML needs to set power limits."),
                **_node_label(),
                "runtimeClassName": _text("The runtime class that mounts NVIDIA's driver; empty: the default one."),
            }
        ),
        hsmp=_object({"enabled": _flag("Run privileged, which the device /dev/hsmp needs."), **_node_label()}),
        pool=_object(
            {
                **_replicas(),
                "storage": _object(
                    {
                        "enabled": _flag("Keep what was found on a volume."),
                        "size": {**_text("Size of the volume."), "pattern": "^[0-9]+(Mi|Gi|M|G)$"},
                        "className": _text("Storage class; empty: the cluster's default."),
                    }
                ),
            },
            "With mode pool.",
        ),
    )


def _monitoring() -> Schema:
    return _object(
        {
            "enabled": _flag("Add PodMonitor, PrometheusRule and dashboards; needs the Prometheus operator's CRDs."),
            "interval": {**_text("Time between two scrapes."), "pattern": _DURATION},
            "labels": _labels("Labels by which your Prometheus finds monitors and rules."),
            "alerts": _flag("Add the alert rules."),
            "documentationUrl": _text("Where the documentation is served, for the links of alerts to runbooks."),
            "dashboards": _flag("Add the Grafana dashboards as ConfigMaps."),
            "dashboardLabels": _labels("Labels by which Grafana's sidecar finds dashboards."),
        }
    )


def _component(
    description: str, settings: dict[str, dict[str, Any]] | None, *more: dict[str, Schema], **parts: Schema
) -> Schema:
    common: dict[str, Schema] = {
        "enabled": _flag("Install it."),
        "resources": {"type": "object", "description": "Requests and limits of the container."},
        "priorityClassName": _text("Its pods' priority; empty: the cluster's default."),
        "nodeSelector": _labels("Nodes that its pods may run on."),
        "tolerations": _list("Taints that its pods tolerate.", {"type": "object"}),
        "affinity": {"type": "object"},
        "podAnnotations": _labels("Annotations of its pods."),
    }
    own = {} if settings is None else {"settings": _settings(settings, "Settings, by environment variable.")}
    return _object(
        {**common, **own, **{name: part for some in more for name, part in some.items()}, **parts}, description
    )


def _settings(settings: dict[str, dict[str, Any]], description: str) -> Schema:
    """Names are checked here, values by templates/_settings.tpl, which can say in words what is allowed."""
    return {**_object({name: _setting(entry) for name, entry in settings.items()}, description)}


def _setting(entry: dict[str, Any]) -> Schema:
    if "instead" in entry:
        return {"description": f"Not here: {entry['instead']}."}
    said = f"{entry['meaning']} Allowed is {entry['allowed']}. Default: {entry['default'] or 'empty'}"
    return {"type": ["string", "number", "boolean"], "description": said}


def _object(properties: dict[str, Schema], description: str = "") -> Schema:
    said = {"description": description} if description else {}
    return {"type": "object", **said, "additionalProperties": False, "properties": properties}


def _replicas() -> dict[str, Schema]:
    return {"replicas": {"type": "integer", "minimum": 1, "maximum": 100, "description": "How many pods."}}


def _node_label() -> dict[str, Schema]:
    return {"nodeLabel": {**_text("Only on nodes with this label, as key=value."), "pattern": "^[^=]+=[^=]+$"}}


def _flag(description: str) -> Schema:
    return {"type": "boolean", "description": description}


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


def _choice(description: str, *choices: str) -> Schema:
    return {"enum": list(choices), "description": description}


def _list(description: str, items: Schema) -> Schema:
    return {"type": "array", "items": items, "description": description}


def _labels(description: str) -> Schema:
    return {"type": "object", "additionalProperties": {"type": "string"}, "description": description}
