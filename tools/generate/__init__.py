"""Writes every file that is generated from the code: `python -m tools.generate`, or `make generate`.

`files` is the list; each page, schema and dashboard has a module here. It imports `joulie`; only tests import it.
"""
