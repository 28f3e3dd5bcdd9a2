"""How much a group may draw: the limit in force, and the part of it that a meter leaves to caps."""
