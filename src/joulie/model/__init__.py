"""Frozen data with units in the names; no behaviour beyond invariants.

May import: nothing of Joulie but `joulie.errors`. Never does I/O, reads a clock or logs.
"""
