"""Grafana dashboards of Joulie, as code: `python -m grafana.dashboards` writes them into the chart."""
