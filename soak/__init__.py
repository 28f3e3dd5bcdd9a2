"""A soak: every process of Joulie on a real API server, under random faults, with invariants checked from outside.

`python -m soak --minutes 30` plays faults in rounds until the time is up and prints what was played and what was seen.
May import `testbed` and the tests' stand-ins; of `joulie` it uses nothing but the command line and the CRDs, so that a
fault in the decision code cannot hide itself.
"""
