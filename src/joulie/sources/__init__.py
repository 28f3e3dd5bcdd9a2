"""Readers of the world outside the cluster's objects: telemetry, facility, models that live in files.

May import: `control` and everything below it; never `cluster` or `devices`.
"""
