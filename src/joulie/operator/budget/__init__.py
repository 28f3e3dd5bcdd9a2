"""The budget loop: reads limits and what agents confirm, orders caps, and renews the lease that agents trust.

Decides with `control.budget.cycle.decide_budgets` alone. Runs beside the reconcile loop, so that a slow decision about
profiles never delays a cut.
"""
