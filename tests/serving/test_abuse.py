"""The abuse bench in short: with real processes on a real API server, no attack costs a lease, a cap or an answer.

Times that depend on the machine are bounded generously here; `python -m bench abuse` is strict.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from bench.attack.stage import Seen, Size, Stage

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

SHORT = Size(nodes=20, seconds=4.0, idle=1_100, slow=300, clients=150, cap_within_s=60.0, times=10.0)


@pytest.mark.slow
def test_no_attack_costs_a_lease_a_cap_or_an_answer(fresh_cluster: ControlPlane) -> None:
    seen: list[Seen] = []
    with ExitStack() as ends:
        stage = Stage(fresh_cluster, SHORT, ends)
        for port in stage.ports:
            for attack in ("idle connections", "slow heads", "slow readers", "huge bodies", "scrapes"):
                seen += stage.play(port, attack)
        seen.append(stage.stop_agent())
    assert [one for one in seen if not one.kept] == []
