"""The cluster at a glance: how much power, which nodes are what, where it is hot, and whether caps are in force."""

from __future__ import annotations

from tools.generate.dashboards.panels import COLOURS, STATES, About, Panel, Query, bars, lines, number

POWER = "sum(max by (node) (joulie_operator_node_power_watts))"
CAPPED = "sum(max by (node) (joulie_operator_node_capped_power_watts))"
# The short form, or else the widest limit of a group: that of all nodes, where there is one.
BUDGET = "max(joulie_operator_power_budget_watts > 0) or max(joulie_budget_limit_watts)"
LIMIT = "max by (budget, group) (joulie_budget_limit_watts)"
GOOD, FAULT = COLOURS["eco"], COLOURS["fault"]
WARNING = COLOURS["draining"]


def _nodes(state: str) -> Query:
    return Query(f'sum(max by (node) (joulie_operator_node_state{{state="{state}"}}))', state)


CLUSTER: dict[str, list[Panel]] = {
    "Now": [
        number(
            About("Power", "CPUs and GPUs of all managed nodes, measured if a source is configured.", "watt"),
            Query(POWER, "power"),
        ),
        number(
            About("Budget in use", "Power over the limit, of the power budget's group that is fullest.", "percent"),
            Query(f"max(100 * max by (budget, group) (joulie_budget_measured_watts) / {LIMIT})", "budget"),
            steps={0: GOOD, 90: WARNING, 100: FAULT},
            empty="no budget",
        ),
        number(
            About("PUE", "Facility power over IT power, from the facility's own metrics.", "none"),
            Query("max(joulie_operator_estimated_pue)", "PUE"),
            empty="not measured",
        ),
        number(
            About(
                "Nodes", "Managed nodes by state. Draining: eco is planned, performance pods are still there.", "none"
            ),
            *(_nodes(state) for state in STATES),
            span=6,
        ),
        number(
            About("Caps not in force", "Devices whose requested cap could not be applied.", "none"),
            Query("sum(max by (node, device) (joulie_agent_cap_missing)) or vector(0)", "devices"),
            steps={0: GOOD, 1: FAULT},
            span=3,
        ),
        number(
            About("Alerts", "Joulie alerts that are firing.", "none"),
            Query('count(ALERTS{alertname=~"Joulie.+",alertstate="firing"}) or vector(0)', "alerts"),
            steps={0: GOOD, 1: FAULT},
            span=3,
        ),
    ],
    "Power": [
        lines(
            About(
                "Power",
                "What the nodes draw, the maximum that their caps allow, and the budget if there is one.",
                "watt",
            ),
            Query(POWER, "drawn"),
            Query(CAPPED, "allowed by caps"),
            Query(BUDGET, "budget"),
            colours={"budget": FAULT, "allowed by caps": COLOURS["unknown"]},
        ),
        lines(
            About("Power by rack", "The ten racks with the highest power.", "watt"),
            Query(
                'topk(10, sum by (rack) (max by (node, rack) (joulie_operator_node_power_watts{rack!=""})))', "{{rack}}"
            ),
        ),
        bars(
            About("Rack load", "Percent of RACK_CAPACITY_WATTS, the ten highest.", "percent"),
            Query('topk(10, max by (rack) (joulie_operator_node_psu_stress_score{rack!=""}))', "{{rack}}"),
            steps={0: GOOD, 80: WARNING, 90: FAULT},
            top=100,
        ),
        lines(
            About(
                "Cooling and headroom", "As the twin predicts them: mean of all nodes, and the worst node.", "percent"
            ),
            Query("avg(max by (node) (joulie_operator_node_cooling_stress_score))", "cooling stress, mean"),
            Query("max(joulie_operator_node_cooling_stress_score)", "cooling stress, highest"),
            Query("avg(max by (node) (joulie_operator_node_headroom_score))", "headroom, mean"),
            Query("min(joulie_operator_node_headroom_score)", "headroom, lowest"),
            top=100,
        ),
    ],
    "Power budgets": [
        bars(
            About("Budgets drawn", "Power over the limit of each group, the ten highest.", "percent"),
            Query(
                f"topk(10, 100 * max by (budget, group) (joulie_budget_measured_watts) / {LIMIT})",
                "{{budget}} {{group}}",
            ),
            steps={0: GOOD, 90: WARNING, 100: FAULT},
            top=100,
        ),
        bars(
            About(
                "Budgets given out",
                "The most that a group's nodes can draw with the caps that they hold, over its limit; the ten highest.",
                "percent",
            ),
            Query(
                f"topk(10, 100 * max by (budget, group) (joulie_budget_allocated_watts) / {LIMIT})",
                "{{budget}} {{group}}",
            ),
            steps={0: GOOD, 100.1: FAULT},
            top=100,
        ),
        lines(
            About("Limits", "The limit in force of each group: windows, signals and meters move it.", "watt"),
            Query(f"topk(10, {LIMIT})", "{{budget}} {{group}}"),
        ),
        lines(
            About("Limits that cannot be kept", "What groups lack for the floors of their nodes.", "watt"),
            Query("max by (budget, group) (joulie_budget_missing_watts)", "{{budget}} {{group}}"),
        ),
        lines(
            About("Caps not confirmed", "Nodes of a group whose agent has not confirmed its last order.", "none"),
            Query(
                "topk(10, max by (budget, group) (joulie_budget_unconfirmed_nodes))",
                "{{budget}} {{group}}",
            ),
        ),
    ],
    "States": [
        lines(
            About("Nodes by state", "How many nodes run at full power, capped, or wait for pods to leave.", "none"),
            *(_nodes(state) for state in STATES),
            stacked=True,
        ),
        lines(
            About("Changes of state", "Nodes that changed, by their new state.", "none"),
            Query(
                "sum by (to_state) (increase(joulie_operator_state_transitions_total[$__rate_interval])) or vector(0)",
                "{{to_state}}",
            ),
        ),
    ],
}
