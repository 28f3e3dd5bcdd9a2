"""How fast the extender answers, beside bare servers and clients that show what the machine allows."""
