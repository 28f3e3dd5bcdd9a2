"""A whole cluster on one machine: live with real processes (`live`), or replayed without a clock (`replay`).

Here at the top the bundled example of `joulie tour`: a small mixed data centre at one moment.
May import: all shells and everything below them. Never prints: the command line shows it.
"""

from __future__ import annotations

from pathlib import Path

# The moment at which the example was taken; its twins are half a minute old then.
NOW = "2026-11-02T09:00:00Z"
# A pod of the example that waits for a GPU.
PENDING_POD = "ml/finetune-0"


def example_path() -> Path:
    """Where the example's manifests lie in this installation."""
    return Path(__file__).with_name("example_cluster.yaml")


def example_yaml() -> str:
    """The example's manifests."""
    return example_path().read_text(encoding="utf-8")
