"""Commands that write to a cluster: pins, pauses, budgets, cleanup. Others write only in `serve` and `setup` (CRDs)."""
