"""Power budgets on a node: orders are kept, followed and confirmed, and nothing but a newer order raises a cap.

What to hold is decided by `control.budget.holding`; here are the disk, the clock and the watch of the Lease around it.
"""
