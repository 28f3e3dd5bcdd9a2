"""Speed as ratios within one run: `make bench`. Machines differ and are noisy, so nothing here is an absolute claim."""
