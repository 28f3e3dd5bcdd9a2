"""A scene of the demo replayed without network and clock, and the comparison of two such runs.

May import: `scenario`, and of the shells the parts that decide. The same seed gives the same bits.
"""
