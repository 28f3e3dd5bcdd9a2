"""Power budgets: limits in watts for groups of nodes that hold at every instant.

`allocate` shares a limit, `orders` turns shares into caps that are safe to write now, `counting` says what a node may
draw at most, `holding` is what an agent does with an order. All of it is pure: state in, plan out, with reasons.
"""
