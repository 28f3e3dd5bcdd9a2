"""`joulie lab`."""
