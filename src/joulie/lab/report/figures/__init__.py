"""The figures of a report, one module each, drawn from comparisons and series.

May import: `joulie.lab.report.drawing` and `joulie.lab.analysis`.
"""
