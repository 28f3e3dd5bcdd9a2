"""The live demo: cluster, simulator, operator, agents, extender, scheduler and story in one process.

May import: `scenario`, of `replay` the results, and all shells. Prints nothing.
"""
