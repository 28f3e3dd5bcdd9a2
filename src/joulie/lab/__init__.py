"""The lab: whole data centres on a laptop, through the same decision code as a live cluster.

Jobs queue, run on `plant` and finish; caps, twins and scores come from `control`, as operator and extender call it. May
import: `plugins`, `sources`, `control`, `plant` and what stands below. What is compiled (numba, an extra) is loaded
only when something runs. A run is a pure function of its setup, its jobs and its seed: same seed, same bits.
"""
