"""What really happens to simulated machines: power, caps that settle, heat, work that slows, cooling that costs.

The ground truth for simulator and lab. May import: `catalogue`, `model` and `errors`, never `physics` or `control`:
otherwise the twin's error against this truth could not be measured. State is one numpy array a quantity, one element
a node or board; time passes only in `step(dt_s, …)`, by any step.
"""
