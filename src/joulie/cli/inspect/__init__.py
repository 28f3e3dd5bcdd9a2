"""Commands that show a cluster, its plan, twins and scores, and the hardware catalogue. They never write."""
