"""Joulie itself: the leader, latencies of decisions and responses, and errors."""

from __future__ import annotations

from tools.generate.dashboards.panels import COLOURS, About, Panel, Query, lines, number

GOOD, FAULT = COLOURS["eco"], COLOURS["fault"]


def _quantile(share: float, metric: str) -> str:
    return f"histogram_quantile({share}, sum by (le) (rate({metric}_bucket[$__rate_interval])))"


def _rate(metric: str, by: str = "") -> str:
    """Shows zero, not a gap, before the first sample."""
    return f"sum {f'by ({by}) ' if by else ''}(rate({metric}[$__rate_interval])) or vector(0)"


ITSELF: dict[str, list[Panel]] = {
    "Now": [
        number(
            About("Leaders", "Leading operators; should be one.", "none"),
            Query("sum(joulie_operator_leader)", "leaders"),
            steps={0: FAULT, 1: GOOD, 2: FAULT},
        ),
        number(
            About("Agents", "Agents that are scraped.", "none"),
            Query("count(joulie_agent_nodes)", "agents"),
        ),
        number(
            About("Nodes with an agent", "Nodes that are managed by an agent.", "none"),
            Query("sum(joulie_agent_nodes)", "nodes"),
        ),
        number(
            About("Silent agents", "Nodes without a report for five minutes.", "none"),
            Query(
                "count(time() - max by (node) (joulie_operator_agent_report_timestamp_seconds) > 300) or vector(0)",
                "nodes",
            ),
            steps={0: GOOD, 1: FAULT},
        ),
        number(
            About("Extenders", "Extenders that are scraped.", "none"),
            Query("count(joulie_scheduler_api_contact_age_seconds)", "extenders"),
        ),
        number(
            About("Unreadable objects", "Objects that cannot be decoded and count as absent.", "none"),
            Query(
                "sum(joulie_operator_broken_objects and on (instance) joulie_operator_leader == 1) or vector(0)",
                "objects",
            ),
            steps={0: GOOD, 1: FAULT},
        ),
    ],
    "Operator": [
        lines(
            About("Time of a decision", "Time to decide, and to write the changes.", "s"),
            *(
                Query(
                    f"histogram_quantile({share}, sum by (le, part) "
                    "(rate(joulie_operator_reconcile_duration_seconds_bucket[$__rate_interval])))",
                    f"{{{{part}}}} p{share * 100:g}",
                )
                for share in (0.5, 0.99)
            ),
        ),
        lines(
            About("Writes to the API server", "Writes per second by the operator and the agents.", "wps"),
            Query(_rate("joulie_operator_api_writes_total", "verb, resource"), "operator {{verb}} {{resource}}"),
            Query(_rate("joulie_agent_api_writes_total", "verb, resource"), "agents {{verb}} {{resource}}"),
        ),
        lines(
            About("Power sources", "Nodes by power source; static is an estimate.", "none"),
            Query(
                "sum by (source) (joulie_operator_power_source_nodes and on (instance) joulie_operator_leader == 1)",
                "{{source}}",
            ),
            stacked=True,
        ),
        lines(
            About("Errors", "Failures per second; all are retried.", "ops"),
            Query(_rate("joulie_operator_reconcile_errors_total"), "decisions"),
            Query(_rate("joulie_operator_write_errors_total"), "writes of the operator"),
            Query(_rate("joulie_agent_write_errors_total"), "reports of agents"),
            Query(_rate("joulie_operator_watch_errors_total"), "watches of the operator"),
            Query(_rate("joulie_agent_watch_errors_total"), "watches of agents"),
            Query(_rate("joulie_scheduler_watch_errors_total"), "watches of the extender"),
            Query(_rate("joulie_scheduler_refused_requests_total"), "requests refused by the extender"),
        ),
    ],
    "Extender": [
        lines(
            About("Time to answer", "kube-scheduler waits for both calls for every pod.", "s"),
            *(
                Query(_quantile(share, f"joulie_scheduler_{verb}_duration_seconds"), f"{verb} p{share * 100:g}")
                for verb in ("filter", "prioritize")
                for share in (0.5, 0.99)
            ),
        ),
        lines(
            About("Requests", "Requests per second, by call and pod class.", "reqps"),
            *(
                Query(
                    _rate(f"joulie_scheduler_{verb}_requests_total", "workload_class"), f"{verb} {{{{workload_class}}}}"
                )
                for verb in ("filter", "prioritize")
            ),
        ),
    ],
    "Agents": [
        lines(
            About(
                "Contact with the API server",
                "Time since the last response; up to a minute is normal, after CAP_LEASE caps are released.",
                "s",
            ),
            Query("max(joulie_agent_contact_age_seconds)", "agents, longest"),
            Query("max(joulie_scheduler_api_contact_age_seconds)", "extenders, longest"),
        ),
        lines(
            About(
                "Time since a node was reconciled", "The longest of all nodes; about RECONCILE_INTERVAL is normal.", "s"
            ),
            Query("time() - min(max by (node) (joulie_agent_last_tick_timestamp_seconds))", "longest"),
        ),
        lines(
            About("How caps are held", "Nodes by how their CPU cap is enforced.", "none"),
            Query("sum by (mode) (max by (node, mode) (joulie_backend_mode))", "{{mode}}"),
            stacked=True,
        ),
        lines(
            About(
                "Released", "Nodes without caps because none is requested, or because the cap lease expired.", "none"
            ),
            Query("sum(max by (node) (joulie_agent_let_go))", "nodes"),
        ),
    ],
}
