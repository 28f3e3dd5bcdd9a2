"""The report: one HTML file about an experiment's stored results, for a person, a printer and a paper.

Plots are SVG drawn here and styled by one style sheet: small, sharp, the same on paper, in the dark and without a
network. Nothing computes a result: numbers, intervals and verdicts come from `joulie.lab.analysis`.
"""
