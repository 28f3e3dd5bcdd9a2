"""Volumes for claims: folders of the node, made in advance, because nothing here provides them on demand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from testbed.node.components import NODE_NAME

FOLDER = Path("/var/lib/volumes")
COUNT = 4
SIZE = "1Gi"


def volumes() -> list[dict[str, Any]]:
    """Make the folders, and the objects that offer them to claims without a class."""
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE_NAME]}
    offered = []
    for number in range(1, COUNT + 1):
        folder = FOLDER / str(number)
        folder.mkdir(parents=True)
        spec = {
            "capacity": {"storage": SIZE},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": str(folder)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        }
        offered.append(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": f"volume-{number}"},
                "spec": spec,
            }
        )
    return offered
