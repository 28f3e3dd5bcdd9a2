"""`joulie simulator` as a process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from joulie.demo import example_path
from testbed.processes import free_port

DEADLINE_S = 30.0


def _command(*arguments: str, **env: str) -> tuple[list[str], dict[str, str]]:
    return [sys.executable, "-m", "joulie", "simulator", *arguments], {**os.environ, **env}


@contextmanager
def _running(*arguments: str, **env: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    port = free_port()
    command, environment = _command(*arguments, SIM_ADDR=f"127.0.0.1:{port}", **env)
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    url = f"http://127.0.0.1:{port}"
    try:
        end_s = time.monotonic() + DEADLINE_S
        while True:
            try:
                _get(url + "/readyz")
                break
            except OSError:
                assert process.poll() is None, process.stderr and process.stderr.read()
                assert time.monotonic() < end_s
                time.sleep(0.05)
        yield process, url
    finally:
        process.kill()
        process.communicate()


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as answer:
        body: bytes = answer.read()
    return body


def _say_what_is_not_http(url: str) -> None:
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01")
        assert b" 400 " in connection.recv(1000)


@pytest.mark.slow
def test_the_bundled_example_is_simulated_from_its_file_until_the_process_is_told_to_end(tmp_path: Path) -> None:
    load = tmp_path / "load.csv"
    load.write_text("time_s,node,cpu,gpu\n0,*,1,1\n")
    with _running("--from", str(example_path()), "--load", str(load), SIM_SPEED="50") as (process, url):
        nodes = json.loads(_get(url + "/debug/nodes"))
        assert len(nodes) == 13
        end_s = time.monotonic() + DEADLINE_S
        while json.loads(_get(url + "/debug/energy"))["elapsedSeconds"] < 10:
            assert time.monotonic() < end_s
            time.sleep(0.05)
        state = json.loads(_get(url + "/state/cpu-a1"))
        assert state["hardware"]["cpu"]["model"].startswith("EPYC")  # its NodeHardware is in the file
        assert state["power"]["cpuWatts"] == pytest.approx(state["cpu"]["capRangeWatts"]["max"], rel=0.1)
        _say_what_is_not_http(url)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0
    lines = [json.loads(line) for line in said.splitlines()]
    assert {(line["component"], line["level"]) for line in lines} == {("simulator", "info")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "env", "named"),
    [
        (["--from", "no-such-file.yaml"], {}, "no-such-file.yaml"),
        (["--from", "EXAMPLE", "--load", "no-such-load.csv"], {}, "no-such-load.csv"),
        (["--from", "EXAMPLE"], {"SIM_STEP": "soon"}, "SIM_STEP='soon'"),
        (["--from", "EXAMPLE"], {"SIM_SPEED": "0"}, "SIM_SPEED='0'"),
        (["--from", "EXAMPLE"], {"HARDWARE_CATALOG_PATH": "no-such-catalogue.toml"}, "no-such-catalogue.toml"),
        (["--kubeconfig", "no-such-kubeconfig"], {}, "no-such-kubeconfig"),
    ],
)
def test_what_cannot_be_used_ends_it_with_one_line(arguments: list[str], env: dict[str, str], named: str) -> None:
    arguments = [str(example_path()) if each == "EXAMPLE" else each for each in arguments]
    command, environment = _command(*arguments, SIM_ADDR="127.0.0.1:0", **env)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert done.returncode == 2
    assert named in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


@pytest.mark.slow
def test_an_address_that_is_taken_ends_it_with_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command, environment = _command("--from", str(example_path()), SIM_ADDR=f"127.0.0.1:{taken.getsockname()[1]}")
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert done.returncode == 2
    assert done.stderr.count("SIM_ADDR") == 1
    assert len(done.stderr.strip().splitlines()) == 1
