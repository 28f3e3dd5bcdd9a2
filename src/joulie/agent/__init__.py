"""The agent: turns each node's target into caps on its devices, and says what became of them.

May import: `cluster`, `devices`, `sources` and everything below them. Never plans: it enforces what is published, and
whatever happens it leaves no unwanted cap behind. It runs on every node, so it loads no numpy.
"""
