"""What the how-to page shows is what the simulator takes."""

from __future__ import annotations

import json
import re

import pytest

from joulie.simulator.control import decode_command
from joulie.simulator.faults import decode_fault
from joulie.simulator.load_file import parse_load_file
from tests.support.howto_pages import FOLDER, files_of

PAGE = (FOLDER / "simulator.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"/control/(\S+) -d '(.+)'", PAGE)
FAULTS = re.findall(r"/debug/faults/\S+ -d '(.+)'", PAGE)


def test_the_page_shows_every_action_and_a_fault() -> None:
    assert len({json.loads(body)["action"] for _, body in COMMANDS}) == 3
    assert FAULTS


@pytest.mark.parametrize(("node", "body"), COMMANDS)
def test_every_command_on_the_page_is_one(node: str, body: str) -> None:
    assert decode_command(body.encode(), node).value is not None


@pytest.mark.parametrize("body", FAULTS)
def test_every_fault_on_the_page_is_one(body: str) -> None:
    assert decode_fault(body.encode()).fault == "lying"


def test_the_load_file_on_the_page_can_be_read() -> None:
    timeline = parse_load_file(files_of("simulator.md")["load.csv"], "load.csv")
    assert timeline.advance(60.0) == {"*", "gpu-b2"}
    assert timeline.told("gpu-b2").cpu == 0.9
