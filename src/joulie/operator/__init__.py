"""The operator: watches the cluster, decides with the core, writes only what changed.

May import: `cluster`, `sources`, `plugins` and everything below them. `writes` is pure: it compares a plan with
the cluster and returns the missing writes; `apply` executes them at the end of a tick.
"""
