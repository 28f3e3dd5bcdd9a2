"""The agent: turns each node's target into caps on its devices, and says what became of them.

May import: `cluster`, `devices`, `sources` and everything below them. Never plans: it enforces what is published, and
whatever happens it leaves no cap behind that nobody wants any more. It runs on every node, so it loads no numpy.
"""
