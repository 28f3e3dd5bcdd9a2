"""The operator: watches the cluster, decides with the core, writes only what changed.

May import: `cluster`, `sources`, `plugins` and everything below them. `writes` is pure: it turns a plan and what is
there into the writes that are missing; `apply` executes them once, last.
"""
