"""`joulie explain`: why a node has its target, or why a pod goes where it goes, number by number. Never writes."""
