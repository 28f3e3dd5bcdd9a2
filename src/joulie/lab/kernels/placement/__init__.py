"""Where pods go: how good each node is for a pod, the best one kept up to date, and binding pods to it.

May import: the memory, power and completion kernels. Knows nothing of the queue.
"""
