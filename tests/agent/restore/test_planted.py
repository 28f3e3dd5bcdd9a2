"""Files that were planted in a pool's STATE_DIR; of one node's, see tests/agent/enforcement/test_leftovers.py."""

from __future__ import annotations

import json
from pathlib import Path

from tests.agent.world import agent, node, put_twin, scenario, twin, until, world

ECO_W = 480  # 60 % of two EPYC 9654


def test_a_planted_journal_leads_to_no_file_outside_its_folder(tmp_path: Path) -> None:
    """What a pool's journal says of its node becomes the name of a file, which is read, replaced and removed."""

    async def play() -> None:
        async with world(tmp_path, node("a")) as around:
            precious = around.state_dir / "precious.json"
            (around.state_dir / "restore").mkdir(parents=True)
            precious.write_text("precious")
            entry = {"device": "http://127.0.0.1:1/control/x", "attribute": "capWatts", "found": None, "wanted": 100}
            planted = {"version": 1, "bootId": "another", "node": "../precious", "entries": [entry]}
            (around.state_dir / "restore" / "x.json").write_text(json.dumps(planted))
            put_twin(around.server, twin("a", 60))
            async with agent(around.server, around.env()) as running:
                await until(lambda: around.cpu_cap_w("a") == ECO_W, "a is capped")
                await running.end()
            assert precious.read_text() == "precious"
            assert [path.name for path in around.state_dir.iterdir() if "precious" in path.name] == ["precious.json"]

    scenario(play())
