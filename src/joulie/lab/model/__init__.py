"""What a run is given and what it leaves behind: setup, jobs, outcome, and what the lab refuses.

Frozen data and arrays. May import: `control`, `model` and what is below them; nothing else of the lab. Reads no file.
"""
