"""Measured node power: one file for each tier that is read from outside, named in `model.tiers.TIERS`."""
