"""What the extender costs the real kube-scheduler, and how good its placements are with a smaller sample."""
