"""Commands for setting up Joulie: settings, custom resource definitions and tab completion.

Only `crds apply` needs a cluster.
"""
