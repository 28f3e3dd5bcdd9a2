"""Power budgets inside a run: groups with their limits, rules that share them, and the loop that turns both into caps.

`shared` is what the operator does: `control.budget` on arrays. The other rules are what it is compared with.
"""
