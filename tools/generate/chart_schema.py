"""`values.schema.json` of the Helm chart, with which Helm rejects unknown values."""

from __future__ import annotations

import json
from typing import Any

from tools.generate.chart_settings import chart_settings

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
        "description": "Generated from tools/generate/chart_schema.py and the settings; after a change: make generate",
        **_object(
            {
                "global": {"type": "object", "description": "Reserved by Helm; not used."},
                "image": _image(),
                "imagePullSecrets": _list("Secrets for pulling the image.", {"type": "object"}),
                "dryRun": _flag("Dry run: decide and report, write to no device. The first step to production."),
                "managedNodes": _text("Nodes that Joulie may cap, as a label selector; empty selects all."),
                "settings": _settings(settings["shared"], "Settings shared by several components."),
                "hardwareCatalogue": _text("Additional CPUs and GPUs for the catalogue, as TOML."),
                "logLevel": _choice("Log level.", "debug", "info", "warning", "error"),
                "operator": _component("Plans the cluster and writes twins.", settings["operator"], _replicas()),
                "agent": _agent(settings["agent"]),
                "extender": _component(
                    "Filters and scores nodes for kube-scheduler.",
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
                "simulator": _component("Simulated hardware, for tests.", settings["simulator"]),
                "performanceAffinity": _object(
                    {"enabled": _flag("Add a MutatingAdmissionPolicy if the API server supports it.")},
                    "Keeps performance pods off eco nodes with kube-scheduler's own node affinity.",
                ),
                "wattsResource": _object(
                    {
                        "enabled": _flag(
                            "Advertise joulie.io/watts, and give pods of labelled namespaces their watts."
                        ),
                        "removal": _flag("After it was enabled: take the resource off the nodes again."),
                        "table": {
                            "type": "object",
                            "description": "Watts of one unit of each resource, and the minimum of a pod.",
                            "propertyNames": {"pattern": "^[-./_A-Za-z0-9]{1,317}$"},
                            "additionalProperties": {  # helm --set makes a string of 2.4
                                "anyOf": [
                                    {"type": "number", "minimum": 0, "maximum": 1000000},
                                    {"type": "string", "pattern": r"^[0-9]{1,6}(\.[0-9]{1,3})?$"},
                                ]
                            },
                        },
                    },
                    "Watts as a resource that kube-scheduler knows, in namespaces that opted in.",
                ),
                "monitoring": _monitoring(),
                "networkPolicy": _object(
                    {
                        "enabled": _flag("Allow ingress only to the ports that each component serves."),
                        "metricsFrom": _list(
                            "Peers that may read metrics and dashboard; empty: all.", {"type": "object"}
                        ),
                    }
                ),
                "cleanup": _object(
                    {
                        "enabled": _flag("Restore nodes before uninstalling."),
                        "timeout": {**_text("How long to wait for agents to restore devices."), "pattern": _DURATION},
                        "resources": {"type": "object"},
                    },
                    "The job that runs before helm uninstall removes anything.",
                ),
                "crds": _object(
                    {"upgrade": _flag("Update the definitions before each upgrade, by a job with the right to.")},
                    "Helm installs definitions and never updates them.",
                ),
                "test": _object(
                    {"wait": {**_text("How long helm test waits until all is well."), "pattern": _DURATION}},
                    "What helm test does.",
                ),
            }
        ),
    }


def _image() -> Schema:
    return _object(
        {
            "repository": {**_text("The image, including its registry."), "minLength": 1},
            "tag": _text("The image tag; empty: the chart's version."),
            "digest": {**_text("sha256:…; takes precedence over the tag."), "pattern": "^(sha256:[0-9a-f]{64})?$"},
            "pullPolicy": _choice("When to pull the image.", "Always", "IfNotPresent", "Never"),
        },
        "The image of operator, agent, extender and simulator.",
    )


def _agent(settings: dict[str, dict[str, Any]]) -> Schema:
    instead = "Not here: set it under daemonset or under pool, depending on the mode."
    return _component(
        "Turns targets into power caps.",
        settings,
        {name: {"description": instead} for name in _placement()},  # a template prints the message
        daemonset=_object(
            {
                **{name: part for name, part in _placement().items() if name != "affinity"},
                "maxUnavailable": {
                    "description": "Agents to replace at a time: a number, or a percentage of the nodes.",
                    "anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": "^[0-9]+%$"}],
                },
                "recursiveReadOnly": _choice("How /sys is mounted in a dry run.", "IfPossible", "Enabled"),
            },
            "Used with mode daemonset.",
        ),
        mode=_choice("One agent per node for its own devices, or a few for many nodes over HTTP.", "daemonset", "pool"),
        nvidia=_object(
            {
                "enabled": _flag("Add the capability SYS_ADMIN, which NVML needs for setting power limits."),
                **_node_label(),
                "runtimeClassName": _text("The runtime class that mounts NVIDIA's driver; empty: the default."),
            }
        ),
        podResources=_object(
            {
                "enabled": _flag("Ask kubelet which pod holds which GPU."),
                "hostPath": {**_text("Kubelet's folder with the socket kubelet.sock."), "pattern": "^/[^ ]+$"},
            },
            "Used with mode daemonset.",
        ),
        hsmp=_object({"enabled": _flag("Run privileged, which the device /dev/hsmp needs."), **_node_label()}),
        pool=_object(
            {
                **_replicas(),
                **_placement(),
                "storage": _object(
                    {
                        "enabled": _flag("Store the journal of original device settings on a volume."),
                        "size": {**_text("Size of the volume."), "pattern": "^[0-9]+(Mi|Gi|M|G)$"},
                        "className": _text("Storage class; empty: the cluster's default."),
                    }
                ),
            },
            "Used with mode pool.",
        ),
    )


def _monitoring() -> Schema:
    return _object(
        {
            "enabled": _flag(
                "Add PodMonitor, PrometheusRule and dashboards; needs the CRDs of the Prometheus operator."
            ),
            "interval": {**_text("Scrape interval."), "pattern": _DURATION},
            "labels": _labels("Labels by which your Prometheus selects monitors and rules."),
            "alerts": _flag("Add the alert rules."),
            "documentationUrl": _text("Base URL of the documentation, for the alerts' runbook links."),
            "dashboards": _flag("Add the Grafana dashboards as ConfigMaps."),
            "dashboardLabels": _labels("Labels by which Grafana's sidecar selects dashboards."),
        }
    )


def _component(
    description: str, settings: dict[str, dict[str, Any]] | None, *more: dict[str, Schema], **parts: Schema
) -> Schema:
    common: dict[str, Schema] = {
        "enabled": _flag("Install it."),
        "resources": {"type": "object", "description": "Requests and limits of the container."},
        "priorityClassName": _text("Priority class of its pods; empty: the cluster's default."),
        **_placement(),
        "podAnnotations": _labels("Annotations of its pods."),
    }
    own: dict[str, Schema] = {}
    if settings is not None:
        own["settings"] = _settings(settings, "Settings, by environment variable.")
        own["settingsFromSecrets"] = {
            "type": "object",
            "description": "Settings that contain passwords, by environment variable: Secret and key.",
            "additionalProperties": {
                **_object({"name": _text("The Secret."), "key": _text("The key in the Secret.")}),
                "required": ["name", "key"],
            },
        }
    return _object(
        {**common, **own, **{name: part for some in more for name, part in some.items()}, **parts}, description
    )


def _placement() -> dict[str, Schema]:
    return {
        "nodeSelector": _labels("Nodes on which its pods may run."),
        "tolerations": _list("Taints that its pods tolerate.", {"type": "object"}),
        "affinity": {"type": "object"},
    }


def _settings(settings: dict[str, dict[str, Any]], description: str) -> Schema:
    """Names are checked here, values by templates/_settings.tpl, which can explain what is allowed."""
    return {**_object({name: _setting(entry) for name, entry in settings.items()}, description)}


def _setting(entry: dict[str, Any]) -> Schema:
    if "instead" in entry:
        return {"description": f"Not here: {entry['instead']}."}
    text = f"{entry['meaning']} Allowed is {entry['allowed']}. Default: {entry['default'] or 'empty'}"
    return {"type": ["string", "number", "boolean"], "description": text}


def _object(properties: dict[str, Schema], description: str = "") -> Schema:
    described = {"description": description} if description else {}
    return {"type": "object", **described, "additionalProperties": False, "properties": properties}


def _replicas() -> dict[str, Schema]:
    return {"replicas": {"type": "integer", "minimum": 1, "maximum": 100, "description": "Number of pods."}}


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
