"""What a decision and its writes cost on a real API server, and how that grows with nodes."""
