"""Joulie itself: who leads, how long decisions and answers take, and what goes wrong."""

from __future__ import annotations

from grafana.panels import COLOURS, About, Panel, Query, lines, number

GOOD, FAULT = COLOURS["eco"], COLOURS["fault"]


def _quantile(share: float, metric: str) -> str:
    return f"histogram_quantile({share}, sum by (le) (rate({metric}_bucket[$__rate_interval])))"


def _rate(metric: str, by: str = "") -> str:
    """Nothing yet is zero, not a hole."""
    return f"sum {f'by ({by}) ' if by else ''}(rate({metric}[$__rate_interval])) or vector(0)"


ITSELF: dict[str, list[Panel]] = {
    "Now": [
        number(
            About("Leaders", "Operators that lead. One is right.", "none"),
            Query("sum(joulie_operator_leader)", "leaders"),
            steps={0: FAULT, 1: GOOD, 2: FAULT},
        ),
        number(
            About("Agents", "Agents that are scraped.", "none"),
            Query("count(joulie_agent_nodes)", "agents"),
        ),
        number(
            About("Nodes with an agent", "Nodes that some agent looks after.", "none"),
            Query("sum(joulie_agent_nodes)", "nodes"),
        ),
        number(
            About("Silent agents", "Nodes of which nobody has reported for five minutes.", "none"),
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
            About("Unreadable objects", "Objects that cannot be read and count as absent.", "none"),
            Query(
                "sum(joulie_operator_broken_objects and on (instance) joulie_operator_leader == 1) or vector(0)",
                "objects",
            ),
            steps={0: GOOD, 1: FAULT},
        ),
    ],
    "Operator": [
        lines(
            About("Time of a decision", "To decide, and to write what changed.", "s"),
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
            About("Writes to the API server", "By the operator and by the agents, a second.", "wps"),
            Query(_rate("joulie_operator_api_writes_total", "verb, resource"), "operator {{verb}} {{resource}}"),
            Query(_rate("joulie_agent_api_writes_total", "verb, resource"), "agents {{verb}} {{resource}}"),
        ),
        lines(
            About(
                "Where power is known from", "Nodes by the source that speaks for them; static is an estimate.", "none"
            ),
            Query(
                "sum by (source) (joulie_operator_power_source_nodes and on (instance) joulie_operator_leader == 1)",
                "{{source}}",
            ),
            stacked=True,
        ),
        lines(
            About("Errors", "Whatever failed, a second; all of it is tried again.", "ops"),
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
            About("Time to answer", "kube-scheduler waits for both with every pod.", "s"),
            *(
                Query(_quantile(share, f"joulie_scheduler_{verb}_duration_seconds"), f"{verb} p{share * 100:g}")
                for verb in ("filter", "prioritize")
                for share in (0.5, 0.99)
            ),
        ),
        lines(
            About("Requests", "By kind and by the class of the pod, a second.", "reqps"),
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
                "Contact with the API server", "Time since it last spoke; a minute is normal, a lease is the end.", "s"
            ),
            Query("max(joulie_agent_contact_age_seconds)", "agents, longest"),
            Query("max(joulie_scheduler_api_contact_age_seconds)", "extenders, longest"),
        ),
        lines(
            About(
                "Time since a node was looked at", "The longest of all nodes; about RECONCILE_INTERVAL is normal.", "s"
            ),
            Query("time() - min(max by (node) (joulie_agent_last_tick_timestamp_seconds))", "longest"),
        ),
        lines(
            About("How caps are held", "Nodes by the way in which their CPU cap is held.", "none"),
            Query("sum by (mode) (max by (node, mode) (joulie_backend_mode))", "{{mode}}"),
            stacked=True,
        ),
        lines(
            About(
                "Let go", "Nodes on which nothing is capped because nobody asks, or because the lease ended.", "none"
            ),
            Query("sum(max by (node) (joulie_agent_let_go))", "nodes"),
        ),
    ],
}
