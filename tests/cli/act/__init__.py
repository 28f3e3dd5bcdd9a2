"""Commands that write to a cluster."""
