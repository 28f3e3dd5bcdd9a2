"""`joulie demo` as a process: real parts over their real interfaces, and an end that leaves nothing behind."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from joulie.cli.demo.screens import TILES
from joulie.demo.scenario.machines import LONELY_NODE, PINNED_NODE
from joulie.overview.colours import STATE_COLOURS
from tests.demo.live.demo_process import Demo, get, get_or_none, running, sample_total, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("demo")]


@pytest.fixture(scope="module")
def demo() -> Iterator[Demo]:
    """One demo that several tests look at while it runs: fast enough to see half a day."""
    with running("--speed", "60", "--for", "10m", "--seed", "7") as started:
        wait_for(lambda: get_or_none(f"{started.dashboard}/readyz"), "dashboard")
        yield started
        started.end()
        assert started.wait() == 0, started.errors


def test_the_address_is_the_first_thing_said_and_the_page_answers(demo: Demo) -> None:
    assert demo.lines[0].startswith("Joulie demo · dashboard at http://127.0.0.1:")
    assert "<title>" in get(f"{demo.dashboard}/")


@pytest.mark.parametrize(
    ("part", "metric"),
    [
        ("operator", "joulie_operator_node_state"),
        ("agent", "joulie_agent_nodes"),
        ("extender", "joulie_scheduler_filter_requests_total"),
        ("simulator", "joulie_sim_"),
        ("own agent", "joulie_agent_nodes"),
    ],
)
def test_every_part_answers_with_its_metrics(demo: Demo, part: str, metric: str) -> None:
    url = f"{demo.part(part)}/metrics"
    wait_for(lambda: metric in (get_or_none(url) or ""), f"{metric} at {url}")


def test_pods_are_scheduled_through_the_extender(demo: Demo) -> None:
    def asked() -> float:
        page = get(f"{demo.part('extender')}/metrics")
        return min(sample_total(page, f"joulie_scheduler_{verb}_requests_total") for verb in ("filter", "prioritize"))

    first = wait_for(asked, "requests to the extender")
    wait_for(lambda: asked() > first + 5, "further requests")
    wait_for(lambda: any(re.search(r"pods [1-9]\d* running", line) for line in list(demo.lines)), "running pods")


def test_what_is_requested_is_enforced_on_the_simulated_hardware(demo: Demo) -> None:
    def capped() -> int:
        nodes = json.loads(get(f"{demo.part('simulator')}/debug/nodes"))
        return sum(node["cpu"]["capWatts"] is not None for node in nodes)

    wait_for(lambda: capped() >= 20, "capped nodes")
    wait_for(lambda: any("enforced 40/40" in line for line in list(demo.lines)), "everything enforced")


def test_the_story_is_told_as_it_happens(demo: Demo) -> None:
    demo.wait_for_line("· Morning")
    demo.wait_for_line(f"The agent of {LONELY_NODE} dies")
    wait_for(lambda: any("enforced 39/40" in line for line in list(demo.lines)), "silent agent")
    demo.wait_for_line(f"The agent of {LONELY_NODE} is back")
    demo.wait_for_line(f"An administrator pins {PINNED_NODE}")
    demo.wait_for_line("The utility cuts feed a by 30 %, from 60.0 kW to 42.0 kW")
    wait_for(lambda: any("feeds/a" in line and "of 42.0 kW" in line for line in list(demo.lines)), "cut in a status")
    demo.wait_for_line("The hottest moment")
    demo.wait_for_line("Feed a has its 60.0 kW back")


def test_nothing_is_said_on_standard_error(demo: Demo) -> None:
    assert demo.errors == []


def test_it_ends_by_itself_with_a_summary() -> None:
    with running("--speed", "60", "--for", "8s") as demo:
        assert demo.wait() == 0
        text = "\n".join(demo.lines)
    assert demo.errors == []
    assert "This run measured" in text
    assert "says nothing about savings" in text
    for scene in ("day", "morning", "afternoon", "night"):
        assert re.search(rf"^  {scene} +\d+\.\d\d +\d+\.\d\d +[+-]\d", text, re.MULTILINE), text
    assert "On average of all 3" in text
    assert "  joulie demo replay --seed 7 --seeds 3" in text
    assert "feed-cut, seed 7: feed a: limit cut by 30 %, from 60.0 kW to 42.0 kW, for 300 s" in text
    assert "  joulie demo replay --seed 7 --scene feed-cut" in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_everything_and_leaves_no_port_process_or_file(number: signal.Signals, tmp_path: Path) -> None:
    with running("--speed", "60", TMPDIR=str(tmp_path)) as demo:
        wait_for(lambda: get_or_none(f"{demo.dashboard}/readyz"), "dashboard")
        ports = demo.ports
        assert len(ports) >= 7
        assert list(tmp_path.glob("joulie-demo-*"))
        demo.end(number)
        demo.hurry(number)
        assert demo.wait() == 0
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
    assert list(tmp_path.iterdir()) == []
    assert "The replays with and without Joulie are missing" in "\n".join(demo.lines)


def test_hammering_ctrl_c_still_gives_the_summary_and_no_traceback() -> None:
    with running("--speed", "60") as demo:
        wait_for(lambda: get_or_none(f"{demo.dashboard}/readyz"), "dashboard")
        while demo.process.poll() is None:
            demo.end()
            time.sleep(0.03)
        assert demo.wait() == 0
    assert demo.errors == []
    assert "Run them with:" in "\n".join(demo.lines)


def test_a_terminal_that_is_closed_ends_everything_at_once(tmp_path: Path) -> None:
    with running("--speed", "20", TMPDIR=str(tmp_path)) as demo:
        children = wait_for(demo.children, "process of the replays")
        demo.end(signal.SIGHUP)
        assert demo.wait() == 0
    assert not [child for child in children if Path(f"/proc/{child}").exists()]
    assert list(tmp_path.iterdir()) == []


def test_the_replays_process_ends_with_the_demo() -> None:
    with running("--speed", "20") as demo:
        children = wait_for(demo.children, "process of the replays")
        demo.end()
        demo.hurry()
        assert demo.wait() == 0
    for child in children:
        assert not Path(f"/proc/{child}").exists()


def test_metrics_ports_are_where_they_were_asked_for_and_taken_ones_refused() -> None:
    base = _free_range(10)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", base + 2))
        taken.listen()
        with running("--metrics-ports", str(base)) as demo:
            assert demo.wait() == 2
            assert len(demo.errors) == 1
            assert f"port {base + 2} cannot be used" in demo.errors[0]
    with running("--metrics-ports", str(base)) as demo:
        parts = [demo.part(name) for name in ("operator", "agent", "extender", "simulator")]
        assert parts == [f"http://127.0.0.1:{base + offset}" for offset in range(4)]
        wait_for(lambda: get_or_none(f"{parts[0]}/metrics"), "operator's metrics")
        demo.end()
        demo.hurry()
        assert demo.wait() == 0


def test_a_taken_port_is_said_and_the_next_is_used() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with running("--port", str(port)) as demo:
            assert f"port {port} is in use" in demo.wait_for_line("is in use")
            assert demo.dashboard != f"http://127.0.0.1:{port}"
            wait_for(lambda: get_or_none(f"{demo.dashboard}/readyz"), "dashboard")
            demo.end()
            demo.hurry()
            assert demo.wait() == 0


def test_a_reader_that_leaves_ends_it_quietly() -> None:
    with running("--speed", "60") as demo:
        demo.wait_for_line("· Morning")
        demo.leave()
        assert demo.wait() == 141
    assert demo.errors == []


def test_on_a_terminal_it_shows_racks_and_gives_the_terminal_back() -> None:
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "joulie", "demo", "--port", "0", "--no-browser", "--speed", "60", "--for", "10s"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(terminal)
    shown = b""
    try:
        while chunk := _read(screen):
            shown += chunk
    finally:
        os.close(screen)
        process.kill()
    assert process.wait() == 0
    text = shown.decode()
    assert "rack-3" in text
    assert "needs attention" in text
    assert "Morning: people send work" in text
    assert "\x1b[?25l" in text  # the cursor was hidden …
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # … and is back
    assert "This run measured" in text[text.rindex("\x1b[?25h") :]


def test_states_are_told_apart_without_colours() -> None:
    assert len({*TILES.values(), "▨"}) == len(TILES) + 1
    assert TILES.keys() == STATE_COLOURS.keys()


def _read(screen: int) -> bytes:
    """What comes next; nothing once the other end is closed."""
    try:
        return os.read(screen, 65536)
    except OSError:
        return b""


def _free_range(count: int) -> int:
    """A port after which so many are free now."""
    for base in range(21000, 60000, count):
        try:
            for port in range(base, base + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return base
    raise AssertionError("no free ports")
