"""The port on an API server in memory, for tests and the demo: versions, watches, server-side apply.

May import: `watch`, `decoding`, `crds` and `port`; never `api`. Imitates only what Joulie can observe.
"""
