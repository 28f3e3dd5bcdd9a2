"""Simulated hardware behind HTTP: many nodes with the dynamics of `plant`, for agents, demos and tests.

May import: the port, settings, physics (to recognise hardware as all other parts do) and `plant`.
`simulation.Simulation` is the whole thing without a network, `api.simulator_routes` its HTTP interface, `process` the
two as a running process. Never decides anything: caps come from outside.
"""
