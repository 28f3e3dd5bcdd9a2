"""Where Kubernetes objects live: behind an API server, in memory or in files.

Processes see `port` and nothing of what implements it. `decoding` turns JSON into the model, `watch` keeps a watch
going, `api` and `memory` implement the port, `files` reads manifests, `lease` elects a leader, and `crds` describes
Joulie's own kinds.

May import: `control` and everything below it. Makes no decisions.
"""
