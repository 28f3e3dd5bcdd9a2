"""Experiments: the file that says what is run and compared, its checks, and the keys of its runs.

May import: `joulie.lab.analysis` and what is below it. Starts no run.
"""
