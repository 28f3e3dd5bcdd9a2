"""What `joulie demo` prints before and after the show: where its parts answer, and what came of it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from joulie.demo import summary
from joulie.demo.day import WHOLE_DAY
from joulie.demo.looking import Options
from joulie.demo.performance import Performed
from joulie.demo.replays_beside import replay_command
from joulie.demo.tuning import Ports
from joulie.settings import DecisionSettings, ScoreSettings, describe


def port_lines(ports: Ports) -> str:
    parts = (
        ("operator", ports.operator),
        ("agent", ports.agent),
        ("extender", ports.extender),
        ("simulator", ports.simulator),
        ("own agent", ports.own_agent),
        *(("more agents", port) for port in ports.more_agents),
    )
    return "\n".join(f"  {name:<12} http://127.0.0.1:{port}/metrics" for name, port in parts)


def summary_text(performed: Performed, options: Options, env: Mapping[str, str]) -> str:
    """What the live run measured, then what the replays say, then how to get the same numbers again."""
    lines = ["", *summary.measured_lines(performed.measured, options.speed), ""]
    joulie = " ".join([*settings_given(options, env), "joulie"])
    again = f"  {joulie} {' '.join(replay_command(options))}"
    if performed.comparisons is None:
        lines += [f"The replays with and without Joulie are missing ({performed.why_none}). Run them with:", again]
        return "\n".join(lines)
    until = f"{performed.comparisons[0].with_joulie.metered_s:g}"
    one = replay_command(options, "--scene", WHOLE_DAY.name, "--with", "--meter-until", until)
    lines += [
        *summary.replay_introduction(options.seed),
        *summary.comparison_lines(performed.comparisons),
        "The same numbers again, and one of them alone (likewise --without):",
        again,
        f"  {joulie} {' '.join(one)}",
    ]
    return "\n".join(lines)


def settings_given(options: Options, env: Mapping[str, str]) -> list[str]:
    """`STATIC_HP_FRAC=0.5`: what was in the environment and counts, for the numbers depend on it."""
    found = [*describe(DecisionSettings, env), *describe(ScoreSettings, env)]
    forced = {"RECONCILE_INTERVAL", "NODE_SELECTOR", *(["POLICY_TYPE"] if options.policy else [])}
    values = {one.variable: one.value for one in found if one.is_set and one.variable not in forced}
    return [f"{variable}={shlex.quote(value)}" for variable, value in values.items()]
