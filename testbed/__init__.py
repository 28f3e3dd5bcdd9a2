"""A real Kubernetes control plane on this machine, without containers: for tests and for trying things out.

Not shipped. `build` has the binaries, `control_plane` runs them, `objects` fills a cluster with machines that do not
exist. `make cluster` puts the three together. Everything listens on loopback only.
"""
