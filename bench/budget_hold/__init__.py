"""Do budgets hold? Real processes on a real API server, simulated machines, and faults; power sampled at 100 ms."""
