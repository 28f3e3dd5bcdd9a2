"""Commands that run a process: operator, agent, extender and simulator.

They load settings, open the connection and pass both to the package of that process, which does the work.
"""
