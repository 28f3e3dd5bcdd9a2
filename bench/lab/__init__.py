"""How fast the lab simulates, and how two versions of it compare."""
