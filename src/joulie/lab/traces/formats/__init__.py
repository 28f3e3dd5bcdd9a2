"""Trace files: one module a format, each turning its columns into jobs with a message for every bad line.

May import: `blocks`, `families` and `remarks` of `joulie.lab.traces`, and `joulie.lab.model`. `reading` decides which
format a file has.
"""
