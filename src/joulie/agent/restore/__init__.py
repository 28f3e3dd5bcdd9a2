"""What makes sure that no cap outlives its reason: the journal of what was found, and the lease of a target.

May import: the agent's `outcome`, `targets` and `shards`. Touches no device.
"""
