"""What runs mean: measures, the lower bound, comparisons paired by seed, and sentences about them.

May import: `joulie.lab.simulation` (for its cluster) and what is below it. Starts no run and reads no stored result.
"""
