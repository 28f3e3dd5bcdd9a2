"""What is installed in a cluster: Joulie's workloads, the operator's settings and lease, and cluster-wide objects.

Used by every command that reads a live cluster. Needs a connection, and prints nothing.
"""
