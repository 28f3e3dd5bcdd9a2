"""Simulated hardware behind HTTP: many nodes with the dynamics of `plant`, for agents, demos and tests (SPEC 8).

May import: the port, settings, physics (to recognise hardware as everybody does) and `plant`. `simulation.Simulation`
is the whole thing without a network, `api.simulator_app` its HTTP interface, `process` the two as a running process.
Never decides anything: caps come from outside.
"""
