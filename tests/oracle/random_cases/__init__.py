"""Random but valid clusters to ask both the oracle and the product about."""
