"""Single nodes: their states over time, power, requested caps and whether these are in force."""

from __future__ import annotations

from tools.generate.dashboards.panels import COLOURS, About, Panel, Query, bars, lines, timeline

_STATE_NUMBERS = {1: "performance", 2: "eco", 3: "draining"}


def _of(metric: str, labels: str = "") -> str:
    """This metric of the chosen nodes."""
    chosen = ",".join(filter(None, ['node=~"$node"', labels]))
    return f"{metric}{{{chosen}}}"


def _state() -> str:
    """The state as one number a node."""
    one = {value: _of("joulie_operator_node_state", f'state="{state}"') for value, state in _STATE_NUMBERS.items()}
    return " + ".join(f"{value} * max by (node) ({series})" for value, series in one.items())


NODES: dict[str, list[Panel]] = {
    "State": [
        timeline(
            About("State", "Full power, capped, or waiting for performance pods to leave.", "none"),
            Query(_state(), "{{node}}"),
            {value: (state, COLOURS[state]) for value, state in _STATE_NUMBERS.items()},
        ),
    ],
    "Power": [
        lines(
            About("Power", "What a node draws, and the maximum that its caps allow.", "watt"),
            Query(f"max by (node) ({_of('joulie_operator_node_power_watts')})", "{{node}}"),
            Query(f"max by (node) ({_of('joulie_operator_node_capped_power_watts')})", "{{node}} allowed by caps"),
        ),
        lines(
            About("Caps", "Requested and in force: all CPU packages together, each GPU separately.", "watt"),
            Query(
                f"max by (node, device) ({_of('joulie_agent_requested_cap_watts')})", "{{node}} {{device}} requested"
            ),
            Query(f"max by (node, device) ({_of('joulie_agent_enforced_cap_watts')})", "{{node}} {{device}} in force"),
        ),
        lines(
            About("Prediction", "Headroom, cooling stress and rack load, as predicted by the twin.", "percent"),
            Query(f"max by (node) ({_of('joulie_operator_node_headroom_score')})", "{{node}} headroom"),
            Query(f"max by (node) ({_of('joulie_operator_node_cooling_stress_score')})", "{{node}} cooling stress"),
            Query(f"max by (node) ({_of('joulie_operator_node_psu_stress_score')})", "{{node}} rack load"),
            top=100,
        ),
        lines(
            About("Score", "The last score returned to kube-scheduler, by pod class.", "none"),
            Query(
                f"max by (node, workload_class) ({_of('joulie_scheduler_final_node_score')})",
                "{{node}} {{workload_class}}",
            ),
            top=100,
        ),
    ],
    "Enforcement": [
        timeline(
            About("Caps not in force", "A requested cap below the maximum that could not be applied.", "none"),
            Query(f"max by (node, device) ({_of('joulie_agent_cap_missing')})", "{{node}} {{device}}"),
            {0: ("in force", COLOURS["eco"]), 1: ("missing", COLOURS["fault"])},
        ),
        lines(
            About(
                "Result by backend",
                "Result of each cap: applied, blocked, error, or none if no cap is requested.",
                "none",
            ),
            Query(
                f"max by (node, device, result, backend) ({_of('joulie_agent_control_result')})",
                "{{node}} {{device}} {{result}} by {{backend}}",
            ),
        ),
        bars(
            About(
                "Last report of the agent",
                "Time since it last reported on the caps; it reports every two minutes.",
                "s",
            ),
            Query(f"time() - max by (node) ({_of('joulie_operator_agent_report_timestamp_seconds')})", "{{node}}"),
            steps={0: COLOURS["eco"], 180: COLOURS["draining"], 300: COLOURS["fault"]},
            top=600,
        ),
        lines(
            About("Drift corrections", "Caps that were changed by other software and restored.", "none"),
            Query(
                f"max by (node) (increase({_of('joulie_agent_drift_corrections_total')}[$__rate_interval]))", "{{node}}"
            ),
        ),
        lines(
            About("Stale twin", "1 while the extender scores the node without its twin.", "none"),
            Query(f"max by (node) ({_of('joulie_scheduler_stale_twin_data')})", "{{node}}"),
            top=1,
        ),
    ],
}
