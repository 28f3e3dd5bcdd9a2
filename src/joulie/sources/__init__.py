"""Readers of data outside the cluster's objects: telemetry, facility, and models in files.

May import: `control` and everything below it; never `cluster` or `devices`.
"""
