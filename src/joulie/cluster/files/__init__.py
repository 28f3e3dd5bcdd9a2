"""A cluster read from manifests: YAML and JSON as kubectl prints it or people write it.

May import: `decoding` and `port`. Never writes a file.
"""
