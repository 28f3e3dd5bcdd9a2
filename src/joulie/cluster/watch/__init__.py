"""Watches that outlive connections: list, watch, resume, and list again, on any server that lists and watches.

May import: `decoding` and `port`. Knows neither HTTP nor the server in memory.
"""
