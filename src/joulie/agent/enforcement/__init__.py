"""Holding one node's devices to its target: journal, write, read back, notice drift, fall back, restore.

May import: `restore` (the journal), the agent's `outcome` and `targets`, and `devices.interface`. Knows no routes, no
cluster and no backend by name.
"""
