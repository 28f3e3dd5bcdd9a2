"""SVG and HTML: markup, axes, plots, figures, and how numbers and variants look. Knows no result.

May import: `joulie.lab.analysis` for the names of its measures.
"""
