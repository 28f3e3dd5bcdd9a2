"""The rules themselves, a module a topic, in the standard library alone."""
