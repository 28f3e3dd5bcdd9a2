"""Grafana dashboards of Joulie, as code."""
