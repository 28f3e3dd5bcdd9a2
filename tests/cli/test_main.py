"""The entry point: help at once, one line for every fault, exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from joulie import __version__, plugins
from joulie.cli import main
from joulie.cli.commands import TABLE
from joulie.errors import JoulieError
from tests.support.cli_runner import DEMO, joulie, node, pod, write

COMMAND = [sys.executable, "-m", "joulie"]
HEAVY = (
    "rich",
    "numpy",
    "yaml",
    "msgspec",
    "importlib.metadata",
    "joulie.control",
    "joulie.model",
    "joulie.cli.inspect.plan",
)


def test_help_groups_the_commands_and_shows_examples() -> None:
    outcome = joulie("--help")
    assert outcome.code == 0
    for heading in ("Look at a cluster:", "See it run:", "Set up:", "Examples:"):
        assert heading in outcome.out
    for name, listed in TABLE.items():
        assert f"  {name} " in outcome.out
        assert listed.help in outcome.out
    assert outcome.err == ""


def test_no_command_shows_the_help() -> None:
    assert joulie() == joulie("--help")


@pytest.mark.parametrize("name", [*TABLE, "explain node", "explain pod"])
def test_every_command_teaches_with_a_purpose_and_examples(name: str) -> None:
    outcome = joulie(*name.split(), "--help")
    assert outcome.code == 0
    assert outcome.out.startswith(f"Usage: joulie {name} ")
    assert outcome.out.count(f"joulie {name.split(maxsplit=1)[0]}") >= 2, "the help shows no example"
    assert all(len(line) <= 110 for line in outcome.out.splitlines())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []])
def test_help_loads_no_library_but_click(arguments: list[str]) -> None:
    script = (
        "import sys\nfrom joulie.cli.main import run\n"
        f"code = run({arguments!r})\n"
        f"print('loaded:', *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    outcome = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert outcome.stdout.splitlines()[-1] == "loaded:"


def test_version() -> None:
    assert joulie("--version") == (0, f"joulie {__version__}\n", "")


def test_it_is_a_kubectl_plugin_too(tmp_path: Path) -> None:
    assert main.program_name("/usr/local/bin/kubectl-joulie") == "kubectl joulie"
    assert main.program_name("/usr/local/bin/joulie") == "joulie"
    plugin = Path(sys.executable).with_name("kubectl-joulie")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    outcome = subprocess.run([plugin, "plan"], capture_output=True, text=True, check=False, env=environment)
    assert outcome.returncode == 2
    assert "| kubectl joulie plan -f -" in outcome.stderr
    outcome = subprocess.run([plugin, "plan", "x"], capture_output=True, text=True, check=False, env=environment)
    assert outcome.stderr.endswith("see: kubectl joulie plan --help\n")


WRONG_USAGE = {
    ("pla",): "no such command 'pla'; did you mean 'plan'? see: joulie --help",
    ("zzz",): "no such command 'zzz'; the commands are plan, twin, ",
    ("plan", "--polcy", "x"): "no such option '--polcy'",
    ("plan", "-o", "xml"): "invalid value for '-o' / '--output': 'xml' is not one of 'table', 'json', 'yaml'",
    ("plan", "-f", DEMO, "--now", "yesterday"): "'yesterday' is not an RFC 3339 time such as 2026-11-01T12:00:00Z",
    ("plan", "-f", DEMO, "--selector", "a=b,,"): "is not a label selector",
    ("plan", "-f", DEMO, "--policy", "fastest"): "--policy 'fastest' is not installed; available: queue_aware_v1,",
    ("plan", "surplus"): "got unexpected extra argument (surplus)",
    ("plan", "-f"): "option '-f' requires an argument",
    ("twin", "-f", DEMO, "--ambient", "nan"): "'nan' cannot be used: allowed is a number from -273 to 1000",
    ("twin", "-f", DEMO, "--ambient", "warm"): "'warm' cannot be used: allowed is a number from -273 to 1000",
    ("score", "-f", DEMO): "pass either --pod NAMESPACE/NAME or --pod-file FILE",
    ("score", "-f", DEMO, "--pod", "a/b", "--pod-file", "c"): "pass either --pod NAMESPACE/NAME or --pod-file FILE",
    ("score", "-f", "-", "--pod-file", "-"): "standard input cannot hold both the cluster (-f -) and the pod",
    ("explain",): "missing subcommand: node or pod; see: joulie explain --help",
    ("explain", "rack", "a"): "no such command 'rack'; the commands are node, pod; see: joulie explain --help",
    ("explain", "node", "-f", DEMO): "missing argument 'NODE'",
    ("completion", "tcsh"): "'tcsh' is not one of 'bash', 'zsh', 'fish'",
}


@pytest.mark.parametrize(("arguments", "said"), WRONG_USAGE.items(), ids=lambda value: str(value)[:60])
def test_wrong_usage_is_one_line_with_a_hint_and_exit_code_2(arguments: tuple[str, ...], said: str) -> None:
    outcome = joulie(*arguments)
    assert outcome.code == 2
    assert said in outcome.complaint
    assert " see: joulie" in outcome.complaint
    assert outcome.complaint.endswith(" --help")


@pytest.mark.parametrize("command", [["plan"], ["twin"], ["score", "--pod", "a/b"], ["explain", "node", "a"]])
def test_without_cluster_and_files_it_says_how_to_give_either(command: list[str], tmp_path: Path) -> None:
    outcome = joulie(*command, env={"HOME": str(tmp_path)})
    assert outcome.code == 2
    assert "set KUBECONFIG or use --kubeconfig" in outcome.complaint
    assert "kubectl get nodes,pods -A -o json | joulie " in outcome.complaint
    assert "nodehardwares,nodetwins,nodepowerprofiles" in outcome.complaint


def test_our_own_errors_are_one_line_with_their_exit_code() -> None:
    with patch.object(plugins, "policy", side_effect=JoulieError("the\nthing \x1b[31mfailed")):
        outcome = joulie("plan", "-f", DEMO)
    assert (outcome.code, outcome.complaint) == (1, "the thing �[31mfailed")


def test_something_unexpected_asks_for_a_report_and_shows_no_traceback() -> None:
    with patch.object(plugins, "policy", side_effect=KeyError("surprise")):
        outcome = joulie("plan", "-f", DEMO)
        shown = joulie("plan", "-f", DEMO, env={"JOULIE_DEBUG": "1"})
    assert outcome.code == 1
    assert (
        outcome.complaint == "internal error: KeyError: 'surprise'; please report it with the output of JOULIE_DEBUG=1"
    )
    assert shown.code == 1
    assert shown.err.startswith("Traceback (most recent call last):")
    assert shown.err.splitlines()[-1].startswith("joulie: internal error: KeyError")


def test_a_wrong_setting_names_variable_value_and_what_is_allowed() -> None:
    outcome = joulie("plan", "-f", DEMO, env={"STATIC_HP_FRAC": "1.5"})
    assert outcome.code == 2
    assert outcome.complaint == "STATIC_HP_FRAC='1.5' cannot be used: allowed is a number from 0 to 1"
    assert joulie("plan", "-f", DEMO, env={"POLICY_TYPE": "x"}).complaint.startswith("POLICY_TYPE='x' cannot be used")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file or directory"),
        ("[[gpu]\n", "cannot be read: "),
        ("[[gpu]]\nname = 'X1'\n", "Object missing required field"),
        ("[[gpu]]\nname = 3\n", "Expected `str`, got `int`"),
    ],
)
def test_a_catalogue_that_cannot_be_used_names_variable_and_file(
    content: str | None, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "models.toml"
    if content is not None:
        path.write_text(content)
    outcome = joulie("plan", "-f", DEMO, env={"HARDWARE_CATALOG_PATH": str(path)})
    assert outcome.code == 2
    assert outcome.complaint.startswith(f"HARDWARE_CATALOG_PATH: {path}: ")
    assert said in outcome.complaint


def test_a_reader_that_leaves_ends_it_quietly() -> None:
    script = f"set -o pipefail; {sys.executable} -m joulie tour --print | head -n 1; exit $?"
    outcome = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert outcome.stdout.startswith("# A small mixed data centre")
    assert outcome.stderr == ""


def test_a_closed_pipe_has_the_usual_exit_code() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        outcome = subprocess.run([*COMMAND, "tour", "--print"], stdout=closed, stderr=subprocess.PIPE, check=False)
    assert (outcome.returncode, outcome.stderr) == (main.PIPE_CLOSED, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("wb") as full:
        outcome = subprocess.run([*COMMAND, "tour", "--print"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert outcome.returncode == 1
    assert outcome.stderr.decode() == "joulie: system error: [Errno 28] No space left on device\n"


def test_an_interrupt_ends_it_with_130_and_without_a_word(tmp_path: Path) -> None:
    pipe = tmp_path / "cluster.yaml"
    os.mkfifo(pipe)
    process = subprocess.Popen([*COMMAND, "plan", "-f", pipe], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with pipe.open("wb"):  # waits until it reads
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_a_terminal_that_knows_ascii_alone_gets_question_marks_not_an_error() -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "100"}
    outcome = subprocess.run([*COMMAND, "tour"], capture_output=True, env=env, check=False)
    assert outcome.returncode == 0
    assert b"? performance" in outcome.stdout
    assert outcome.stderr == b""


def test_json_is_the_only_thing_on_standard_output(tmp_path: Path) -> None:
    file = write(tmp_path, node("a"), {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}, pod("p"))
    for command in (
        ["plan"],
        ["twin"],
        ["score", "--pod", "team/p"],
        ["explain", "node", "a"],
        ["explain", "pod", "team/p"],
    ):
        outcome = joulie(*command, "-f", file, "-o", "json")
        assert outcome.code == 0
        json.loads(outcome.out)
        assert outcome.err.startswith("joulie: warning: ")
