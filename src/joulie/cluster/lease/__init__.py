"""Leader election by a Lease object.

May import: `port`; works with any implementation of it.
"""
