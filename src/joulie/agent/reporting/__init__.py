"""What the agent says of its nodes: their hardware, what became of their caps, events; paced, and only what changed.

May import: the agent's `outcome`, `shards` and `cluster_view`. Touches no device.
"""
