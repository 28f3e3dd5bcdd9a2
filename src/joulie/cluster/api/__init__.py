"""The port on a Kubernetes API server: HTTP, credentials, and one-line errors.

May import: `watch`, `decoding` and `port`; never `memory` or `files`. Retries nothing except watches.
"""
