"""For each alert the series that set it off and that end it, minute by minute, as promtool takes them.

`9` in `0x9` means nine more: `0x9 1x30 0x60` is 0 in minutes 0 to 9, 1 in minutes 10 to 40, and 0 afterwards.
"""

from __future__ import annotations

from typing import NamedTuple

TROUBLE = "0x9 1x30 0x60"
TROUBLE_S_END = 42


class Case(NamedTuple):
    alert: str
    series: dict[str, str]
    labels: dict[str, str]  # of the one alert that fires
    summary: str
    quiet: int  # minutes: it is not firing yet, but trouble is there
    fires: int
    over: int = TROUBLE_S_END
    description: str = ""  # where it is not the rule's own text
    what: str = ""


def budget_series(**other: str) -> dict[str, str]:
    """The series of a group of a budget in good order, but for these; beside it one that is only reported."""
    known = {
        "limit": "900x100",
        "allocated": "880x100",
        "measured": "400x100",
        "floor": "300x100",
        "missing": "0x100",
    } | other
    labels, reported = '{budget="racks",group="r1",instance="o"}', '{budget="all",group="",instance="o"}'
    return {
        **{f"joulie_budget_{name}_watts{labels}": values for name, values in known.items()},
        f"joulie_budget_unconfirmed_nodes{labels}": "0x100",
        f"joulie_budget_limit_watts{reported}": "900x100",
        f"joulie_budget_allocated_watts{reported}": "1200x100",
        f"joulie_budget_measured_watts{reported}": "880x100",
        f"joulie_budget_missing_watts{reported}": "0x100",
    }


CASES = [
    Case(
        "JoulieCapNotEnforced",
        {
            'joulie_agent_cap_missing{node="n1",device="gpu",instance="a"}': TROUBLE,
            'joulie_agent_cap_missing{node="n1",device="cpu",instance="a"}': "0x100",
        },
        {"node": "n1", "device": "gpu", "severity": "warning"},
        "n1: the gpu cap that was asked for is not in force",
        quiet=14,
        fires=16,
    ),
    Case(
        "JoulieCapContested",
        {'joulie_agent_drift_corrections_total{node="n1",instance="a"}': "0x9 1+1x2 3x90"},
        {"node": "n1", "severity": "warning"},
        "n1: something else keeps changing the power caps",
        quiet=14,
        fires=35,
        over=60,
        description="Put back 3 times in half an hour; the agent gives up rather than fight.",
    ),
    Case(
        "JoulieCapNotRestored",
        {'joulie_agent_unrestored{node="n1",instance="a"}': "0x9 2x40 0x40"},
        {"node": "n1", "severity": "warning"},
        "n1: a cap that is no longer wanted cannot be removed",
        quiet=24,
        fires=26,
        over=52,
        description=(
            "2 values are still capped after fifteen minutes of retries; work there runs slower than it should."
        ),
    ),
    Case(
        "JoulieTwinStale",
        {
            'joulie_scheduler_stale_twin_data{node="n1",instance="x1"}': TROUBLE,
            'joulie_scheduler_stale_twin_data{node="n1",instance="x2"}': TROUBLE,
            'joulie_scheduler_stale_twin_data{node="not-managed",instance="x1"}': "1x100",
            'joulie_operator_node_state{node="n1",state="eco",instance="o"}': "1x100",
            'joulie_operator_node_state{node="n1",state="draining",instance="o"}': "0x100",
        },
        {"node": "n1", "severity": "warning"},
        "n1: its twin is stale, and pods are placed there without knowing its power",
        quiet=14,
        fires=16,
    ),
    Case(
        "JoulieAgentSilent",
        {
            'joulie_operator_agent_report_timestamp_seconds{node="n1",instance="o"}': "0+60x9 540x30 2460+60x60",
            'joulie_operator_agent_report_timestamp_seconds{node="n2",instance="o"}': "0+60x100",
        },
        {"node": "n1", "severity": "warning"},
        "n1: its agent is silent",
        quiet=18,
        fires=20,
    ),
    Case(
        "JoulieAgentSilent",
        {'joulie_operator_agent_report_timestamp_seconds{node="n1",instance="o"}': "_x10 0x30 2460+60x60"},
        {"node": "n1", "severity": "warning"},
        "n1: its agent is silent",
        quiet=14,
        fires=16,
        what="it never spoke",
    ),
    Case(
        "JoulieDrainStuck",
        {
            'joulie_operator_node_state{node="n1",state="draining",instance="o"}': "0x9 1x600 0x60",
            'joulie_operator_node_state{node="n1",state="eco",instance="o"}': "1x9 0x600 1x60",
        },
        {"node": "n1", "severity": "info"},
        "n1: draining for more than eight hours",
        quiet=489,
        fires=491,
        over=612,
    ),
    Case(
        "JoulieBudgetExceeded",
        budget_series(measured="400x9 950x30 400x60"),
        {"severity": "critical", "budget": "racks", "group": "r1"},
        "Budget racks r1: 950W, more than its limit",
        quiet=11,
        fires=13,
        what="by what is drawn",
    ),
    Case(
        "JoulieBudgetExceeded",
        budget_series(allocated="880x9 1000x30 880x60"),
        {"severity": "critical", "budget": "racks", "group": "r1"},
        "Budget racks r1: 1kW, more than its limit",
        quiet=11,
        fires=13,
        what="by what may be drawn",
    ),
    Case(
        "JoulieBudgetInfeasible",
        budget_series(missing="0x9 120x30 0x60", floor="300x9 1020x30 300x60", allocated="880x9 1020x30 880x60"),
        {"severity": "critical", "budget": "racks", "group": "r1"},
        "Budget racks r1: 120W are missing for its floors",
        quiet=11,
        fires=13,
    ),
    Case(
        "JoulieBudgetMeterLost",
        {'joulie_budget_meter_lost{budget="racks",group="r1",instance="o"}': "0x9 1x30 0x60"},
        {"severity": "warning", "budget": "racks", "group": "r1"},
        "Budget racks r1: its meter is lost",
        quiet=14,
        fires=16,
    ),
    Case(
        "JoulieBudgetNearlyExhausted",
        budget_series(measured="400x9 882x30 400x60"),
        {"severity": "warning", "budget": "racks", "group": "r1"},
        "Budget racks r1: 98 % of its limit is in use",
        quiet=24,
        fires=26,
        what="by what is drawn",
    ),
    Case(
        "JoulieBudgetNearlyExhausted",
        budget_series(floor="300x9 891x30 300x60"),
        {"severity": "warning", "budget": "racks", "group": "r1"},
        "Budget racks r1: 99 % of its limit is in use",
        quiet=24,
        fires=26,
        what="by what floors need",
    ),
    Case(
        "JoulieRackNearCapacity",
        {
            'joulie_operator_node_psu_stress_score{node="n1",rack="r1",instance="o"}': "50x9 95x30 50x60",
            'joulie_operator_node_psu_stress_score{node="n2",rack="r1",instance="o"}': "50x9 95x30 50x60",
            'joulie_operator_node_psu_stress_score{node="n3",rack="",instance="o"}': "100x100",
        },
        {"rack": "r1", "severity": "warning"},
        "r1: at 95 % of the rack's capacity",
        quiet=19,
        fires=21,
    ),
    Case(
        "JoulieCoolingStressHigh",
        {
            'joulie_operator_node_cooling_stress_score{node="n1",rack="r1",instance="o"}': "40x9 80x40 40x60",
            'joulie_operator_node_cooling_stress_score{node="large",rack="r1",instance="o"}': "100x120",
        },
        {"severity": "warning"},
        "Cooling is at 90 % of its capacity, all nodes taken together",
        quiet=39,
        fires=41,
        over=52,
    ),
    Case(
        "JoulieOperatorNoLeader",
        {'joulie_operator_leader{instance="o1"}': "1x9 0x30 1x60", 'joulie_operator_leader{instance="o2"}': "0x100"},
        {"severity": "critical"},
        "No operator leads",
        quiet=12,
        fires=14,
        what="those there do not lead",
    ),
    Case(
        "JoulieOperatorNoLeader",
        {'joulie_operator_leader{instance="o1"}': "1x9 stale _x29 1x60"},
        {"severity": "critical"},
        "No operator leads",
        quiet=12,
        fires=14,
        what="none is there",
    ),
    Case(
        "JoulieOperatorTwoLeaders",
        {'joulie_operator_leader{instance="o1"}': "1x100", 'joulie_operator_leader{instance="o2"}': TROUBLE},
        {"severity": "critical"},
        "2 operators say that they lead",
        quiet=11,
        fires=13,
    ),
    Case(
        "JoulieDecisionsFailing",
        {'joulie_operator_reconcile_errors_total{instance="o"}': "0x9 1+1x30 31x60"},
        {"severity": "warning"},
        "The operator's decisions fail",
        quiet=19,
        fires=22,
        over=47,
    ),
    Case(
        "JoulieWritesFailing",
        {'joulie_operator_write_errors_total{instance="o"}': "0x9 2+2x30 62x60"},
        {"severity": "warning"},
        "The operator cannot write all that it decided",
        quiet=19,
        fires=22,
        over=47,
        description="10 writes for nodes failed in the last five minutes; each is tried again.",
    ),
    Case(
        "JoulieObjectUnreadable",
        {
            'joulie_operator_broken_objects{kind="NodePowerProfile",instance="o1"}': "0x9 2x30 0x60",
            'joulie_operator_broken_objects{kind="Pod",instance="o1"}': "0x100",
            'joulie_operator_broken_objects{kind="Pod",instance="led-before"}': "3x100",
            'joulie_operator_leader{instance="o1"}': "1x100",
            'joulie_operator_leader{instance="led-before"}': "0x100",
        },
        {"kind": "NodePowerProfile", "severity": "info"},
        "2 objects of kind NodePowerProfile cannot be read and count as absent",
        quiet=19,
        fires=21,
    ),
    Case(
        "JoulieWatchErrors",
        {
            'joulie_operator_watch_errors_total{kind="NodeTwin",instance="o"}': "0x9 4+4x30 124x60",
            'joulie_operator_watch_errors_total{kind="Pod",instance="o"}': "0x100",
        },
        {"instance": "o", "kind": "NodeTwin", "severity": "warning"},
        "o: watching NodeTwin keeps failing",
        quiet=15,
        fires=22,
        over=52,
    ),
    Case(
        "JoulieWatchErrors",
        {'joulie_agent_watch_errors_total{instance="a"}': "0x9 4+4x30 124x60"},
        {"instance": "a", "severity": "warning"},
        "a: watching the cluster keeps failing",
        quiet=15,
        fires=22,
        over=52,
        what="an agent does not say of which kind",
    ),
    Case(
        "JoulieExtenderSlow",
        {
            'joulie_scheduler_filter_duration_seconds_bucket{le="0.1",instance="x"}': "0+60x9 540x30 600+60x60",
            'joulie_scheduler_filter_duration_seconds_bucket{le="0.2",instance="x"}': "0+60x101",
            'joulie_scheduler_filter_duration_seconds_bucket{le="+Inf",instance="x"}': "0+60x101",
            'joulie_scheduler_prioritize_duration_seconds_bucket{le="0.1",instance="x"}': "0+60x101",
            'joulie_scheduler_prioritize_duration_seconds_bucket{le="+Inf",instance="x"}': "0+60x101",
        },
        {"severity": "warning"},
        "The extender takes 199ms for one answer in a hundred",
        quiet=19,
        fires=25,
        over=50,
    ),
    Case(
        "JoulieExtenderErrors",
        {
            'joulie_scheduler_refused_requests_total{code="500",instance="x"}': "0x9 6+6x30 186x60",
            'joulie_scheduler_filter_requests_total{workload_class="standard",instance="x"}': "0+27x101",
            'joulie_scheduler_prioritize_requests_total{workload_class="standard",instance="x"}': "0+27x101",
        },
        {"severity": "warning"},
        "The extender refuses 10% of its requests",
        quiet=19,
        fires=25,
        over=50,
    ),
    Case(
        "JoulieExtenderDown",
        {'joulie_scheduler_api_contact_age_seconds{instance="x"}': "1x70 stale _x29 1x60"},
        {"severity": "warning"},
        "No extender can be seen",
        quiet=75,
        fires=77,
        over=102,
    ),
]

# What a cluster in good order says for three hours; values move as they do in life.
HEALTHY = {
    'joulie_operator_leader{instance="o1"}': "1x180",
    'joulie_operator_leader{instance="o2"}': "0x180",
    'joulie_operator_power_budget_watts{instance="o1"}': "0x180",
    'joulie_budget_limit_watts{budget="racks",group="r1",instance="o1"}': "900x60 700x120",
    'joulie_budget_allocated_watts{budget="racks",group="r1",instance="o1"}': "900x61 700x120",
    'joulie_budget_measured_watts{budget="racks",group="r1",instance="o1"}': "500+2x60 600x120",
    'joulie_budget_floor_watts{budget="racks",group="r1",instance="o1"}': "300x180",
    'joulie_budget_missing_watts{budget="racks",group="r1",instance="o1"}': "0x180",
    'joulie_budget_unconfirmed_nodes{budget="racks",group="r1",instance="o1"}': "0x60 2x1 0x120",
    'joulie_operator_node_state{node="n1",state="performance",instance="o1"}': "1x60 0x120",
    'joulie_operator_node_state{node="n1",state="draining",instance="o1"}': "0x60 1x60 0x60",
    'joulie_operator_node_state{node="n1",state="eco",instance="o1"}': "0x121 1x60",
    'joulie_operator_node_power_watts{node="n1",rack="r1",instance="o1"}': "300+2x90 480-2x90",
    'joulie_operator_node_psu_stress_score{node="n1",rack="r1",instance="o1"}': "60x90 92x5 60x90",
    'joulie_operator_node_psu_stress_score{node="n2",rack="",instance="o1"}': "100x180",
    'joulie_operator_node_cooling_stress_score{node="n1",rack="r1",instance="o1"}': "30x90 40x90",
    'joulie_operator_node_cooling_stress_score{node="large",rack="",instance="o1"}': "100x180",
    'joulie_operator_agent_report_timestamp_seconds{node="n1",instance="o1"}': "0+60x180",
    'joulie_operator_reconcile_errors_total{instance="o1"}': "0x60 1x120",
    'joulie_operator_write_errors_total{instance="o1"}': "0x60 3x120",
    'joulie_operator_watch_errors_total{kind="Pod",instance="o1"}': "0x60 2x120",
    'joulie_operator_broken_objects{kind="Pod",instance="o1"}': "0x180",
    'joulie_agent_cap_missing{node="n1",device="cpu",instance="a"}': "0x60 1x3 0x120",
    'joulie_agent_drift_corrections_total{node="n1",instance="a"}': "0x60 1x120",
    'joulie_agent_watch_errors_total{instance="a"}': "0x60 3x120",
    'joulie_scheduler_stale_twin_data{node="n1",instance="x"}': "0x60 1x2 0x120",
    'joulie_scheduler_stale_twin_data{node="not-managed",instance="x"}': "1x180",
    'joulie_scheduler_api_contact_age_seconds{instance="x"}': "30x180",
    'joulie_scheduler_watch_errors_total{kind="Node",instance="x"}': "0x60 1x120",
    'joulie_scheduler_refused_requests_total{code="400",instance="x"}': "1x60 2x120",
    'joulie_scheduler_filter_requests_total{workload_class="standard",instance="x"}': "0+60x180",
    'joulie_scheduler_prioritize_requests_total{workload_class="standard",instance="x"}': "0+60x180",
    'joulie_scheduler_filter_duration_seconds_bucket{le="0.005",instance="x"}': "0+60x180",
    'joulie_scheduler_filter_duration_seconds_bucket{le="+Inf",instance="x"}': "0+60x180",
    'joulie_scheduler_prioritize_duration_seconds_bucket{le="0.005",instance="x"}': "0+60x180",
    'joulie_scheduler_prioritize_duration_seconds_bucket{le="+Inf",instance="x"}': "0+60x180",
}
