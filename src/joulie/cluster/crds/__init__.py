"""CustomResourceDefinitions of Joulie's kinds, derived from the classes that decode them.

May import: `model`.
"""
