"""One run: the compiled world moves on, operator and extender decide as they do live, and both are recorded.

May import: `joulie.lab.kernels`, `joulie.lab.traces`, `joulie.lab.model`. A run is a pure function of setup, jobs and
seed.
"""
