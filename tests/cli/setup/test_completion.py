"""Tab completion: the scripts, and what they offer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from joulie.cli.commands import TABLE
from tests.support.cli_runner import joulie


def offered(line: str) -> list[str]:
    """What the shell would be offered at the end of the line."""
    words = line.split(" ")
    env = {"_JOULIE_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    outcome = joulie(env=env)
    assert (outcome.code, outcome.err) == (0, "")
    return [entry.removeprefix("plain,") for entry in outcome.out.splitlines()]


def test_commands_are_completed_without_loading_them() -> None:
    assert offered("joulie ") == list(TABLE)
    assert offered("joulie ex") == ["explain", "extender"]
    assert offered("joulie explain ") == ["node", "pod"]


def test_values_of_options_are_completed() -> None:
    assert offered("joulie plan -o ") == ["table", "json", "yaml"]
    assert {"static_partition", "queue_aware_v1"} <= set(offered("joulie plan --policy "))
    assert offered("joulie plan --policy q") == ["queue_aware_v1"]
    assert offered("joulie completion ") == ["bash", "zsh", "fish"]
    assert "--selector" in offered("joulie plan --s")


def test_file_names_are_left_to_the_shell() -> None:
    assert offered("joulie plan -f clus") == ["file,clus"]
    assert offered("joulie score --pod-file ") == ["file,"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_that_asks_joulie(shell: str) -> None:
    outcome = joulie("completion", shell)
    assert (outcome.code, outcome.err) == (0, "")
    assert f"_JOULIE_COMPLETE={shell}_complete" in outcome.out


def test_bash_completes_with_the_script(tmp_path: Path) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(joulie("completion", "bash").out)
    test = f"""
        PATH={Path(sys.executable).parent}:$PATH
        source {script}
        COMP_WORDS=(joulie explain n) COMP_CWORD=2
        _joulie_completion joulie n explain
        echo "${{COMPREPLY[@]}}"
    """
    outcome = subprocess.run(["bash", "--norc", "-c", test], capture_output=True, text=True, check=False)
    assert outcome.stdout.strip() == "node", outcome.stderr


def test_the_help_says_where_the_script_goes() -> None:
    shown = joulie("completion", "--help").out
    for place in ("bash-completion/completions/joulie", "_joulie", ".config/fish/completions/joulie.fish"):
        assert place in shown
