"""Which devices of a node are controlled how, and where its power is read: from profiles and settings to backends.

May import: `enforcement` and what is below it, all of `devices`, and `sources` for power from Prometheus. Enforces
nothing, but gives back what an earlier route capped.
"""
