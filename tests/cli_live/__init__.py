"""The command line on a real API server, with operator, agent, extender and simulated machines as real processes."""
