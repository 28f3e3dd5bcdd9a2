"""Devices behind an HTTP endpoint, such as the simulator's.

May import: `interface`, and of the shared modules `egress`, which keeps requests where they may go. Never another
backend.
"""
