"""Joulie: energy management for Kubernetes."""

__version__ = "0.1.0"
