"""The nodes of a cluster as columns for scoring, kept up to date event by event, and what every node scores for a pod.

May import: `control.scoring` and what is below. Pure like all of `control`.
"""
