"""`joulie lab`: experiments on simulated data centres. `joulie.lab` does the work."""
