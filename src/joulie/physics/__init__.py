"""What the twin believes will happen: power, cooling, headroom, the marginal power of a pod.

May import: `catalogue`, `model`, `settings`, `errors`. Formulas are written once with arithmetic and numpy's
`minimum`, `maximum` and `where`, so they take single numbers and arrays alike. Never does I/O or reads a clock.
"""
