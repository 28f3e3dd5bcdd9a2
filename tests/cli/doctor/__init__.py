"""`joulie doctor`: healthy clusters, and every fault that can be planted."""
