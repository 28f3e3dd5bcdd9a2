"""Compiled code: the state of a run and every event that changes it.

What is not plain bookkeeping is a formula of `control` or `plant`, compiled from there. May import:
`joulie.lab.model`, `control`, `plant` and what is below them. Nothing here reads a file, a clock or chance.
"""
