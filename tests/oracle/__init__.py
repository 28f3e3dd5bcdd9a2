"""A second, deliberately plain reading of the specification's decision rules.

It serves as the oracle of differential tests: slow, obvious, standard library only, and without any import
from the product. Where the specification left a choice, ``DECISIONS.md`` says which one was taken here.
"""
