"""The work of a run: generated from families of jobs, or read from a file, and checked against the cluster.

May import: `joulie.lab.model`. Knows nothing of how jobs are scheduled or what they cost.
"""
