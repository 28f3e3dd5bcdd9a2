"""Many runs: performed in this process, in child processes or on a Dask cluster, and stored whole or not at all.

May import: `joulie.lab.experiment` and what is below it. Only `report`, which reads it, is above.
"""
