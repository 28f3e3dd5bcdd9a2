"""`joulie explain`."""
