"""Which job starts next: first come, first served, whole gangs, and EASY backfill around one reservation.

May import: `joulie.lab.kernels.placement` and what is below it.
"""
