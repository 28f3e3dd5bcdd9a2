"""Commands that show a cluster."""
