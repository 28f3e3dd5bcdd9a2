"""What `joulie demo` prints before and after the live run: addresses of its components, and the results."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from joulie.demo import summary
from joulie.demo.live.interface import DemoOptions
from joulie.demo.live.replay_process import replay_command
from joulie.demo.live.session import SessionResult
from joulie.demo.scenario.day import FEED_CUT, WHOLE_DAY
from joulie.demo.settings import DemoPorts
from joulie.settings import DecisionSettings, ScoreSettings, describe


def port_lines(ports: DemoPorts) -> str:
    parts = (
        ("operator", ports.operator),
        ("agent", ports.agent),
        ("extender", ports.extender),
        ("simulator", ports.simulator),
        ("own agent", ports.own_agent),
        *(("more agents", port) for port in ports.more_agents),
    )
    return "\n".join(f"  {name:<12} http://127.0.0.1:{port}/metrics" for name, port in parts)


def summary_text(performed: SessionResult, options: DemoOptions, env: Mapping[str, str]) -> str:
    """What the live run measured, the results of the replays, and how to reproduce them."""
    lines = ["", *summary.measured_lines(performed.measured, options.speed), ""]
    joulie = " ".join([*settings_given(options, env), "joulie"])
    again = f"  {joulie} {' '.join(replay_command(options))}"
    if performed.replays is None:
        lines += [f"The replays with and without Joulie are missing ({performed.why_none}). Run them with:", again]
        return "\n".join(lines)
    comparisons, feed_cut = performed.replays
    until = f"{comparisons[0].with_joulie.metered_s:g}"
    one = replay_command(options, "--scene", WHOLE_DAY.name, "--with", "--meter-until", until)
    lines += [
        *summary.replay_introduction(options.seed),
        *summary.comparison_lines(comparisons),
        "To reproduce these numbers, or one of them alone (also with --without):",
        again,
        f"  {joulie} {' '.join(one)}",
        "",
        "And the cut of a feed, replayed with Joulie, without the cut, and without Joulie:",
        *summary.feed_cut_lines(feed_cut),
        "To reproduce it:",
        f"  {joulie} {' '.join(replay_command(options, '--scene', FEED_CUT.name))}",
    ]
    return "\n".join(lines)


def settings_given(options: DemoOptions, env: Mapping[str, str]) -> list[str]:
    """`STATIC_HP_FRAC=0.5`: settings from the environment that affect the numbers."""
    found = [*describe(DecisionSettings, env), *describe(ScoreSettings, env)]
    forced = {"RECONCILE_INTERVAL", "NODE_SELECTOR", *(["POLICY_TYPE"] if options.policy else [])}
    values = {one.variable: one.value for one in found if one.is_set and one.variable not in forced}
    return [f"{variable}={shlex.quote(value)}" for variable, value in values.items()]
