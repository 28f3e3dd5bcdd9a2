from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from joulie import plugins
from joulie.control.policies.static_partition import StaticPartition
from joulie.errors import JoulieError, PluginError, SettingError
from joulie.physics.cooling import LinearCoolingModel
from joulie.settings import TwinSettings

Install = Callable[[str, str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a distribution with one module and its entry points on the path, as pip would."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def put(module: str, code: str, entry_points: str) -> None:
        (tmp_path / f"{module}.py").write_text(textwrap.dedent(code))
        metadata = tmp_path / f"{module}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(textwrap.dedent(entry_points))
        monkeypatch.delitem(sys.modules, module, raising=False)

    return put


def test_builtin_policies_are_found_by_the_name_they_give_themselves() -> None:
    assert {"static_partition", "queue_aware_v1", "rule_swap_v1"} <= set(plugins.policy_names())
    for name in ("static_partition", "queue_aware_v1", "rule_swap_v1"):
        assert plugins.policy(name).name == name
    assert isinstance(plugins.policy("static_partition"), StaticPartition)


def test_builtin_cooling_models_are_listed_and_the_linear_one_takes_its_settings() -> None:
    assert {"linear", "fmu"} <= set(plugins.cooling_names())
    model = plugins.cooling("linear", TwinSettings(reference_node_power_w=8000))
    assert isinstance(model, LinearCoolingModel)
    assert float(model.stress(4000, 20)) == 40  # type: ignore[arg-type]


def test_an_unknown_policy_is_answered_with_the_ones_there_are() -> None:
    with pytest.raises(SettingError) as raised:
        plugins.policy("fastest")
    assert str(raised.value).startswith("POLICY_TYPE='fastest' cannot be used: allowed is one of ")
    assert "queue_aware_v1, rule_swap_v1, static_partition" in str(raised.value)
    assert raised.value.exit_code == 2


def test_an_unknown_cooling_model_is_answered_with_the_ones_there_are() -> None:
    with pytest.raises(SettingError, match=r"^COOLING_MODEL='ice' cannot be used: allowed is one of .*fmu, linear"):
        plugins.cooling("ice", TwinSettings())


BROKEN_POLICIES = {
    "raises at import": ("raise RuntimeError('no\\nlicence')", "RuntimeError: no licence"),
    "is not there": ("", "has no attribute 'P'"),
    "cannot be made": ("class P:\n    name = 'p'\n    def __init__(self, x): ...", "cannot be made: TypeError"),
    "has no name": ("class P:\n    def plan(self, view): ...", "has no name"),
    "has an empty name": ("class P:\n    name = ''\n    def plan(self, view): ...", "has no name"),
    "cannot plan": ("class P:\n    name = 'p'", "has no method `plan`"),
}


@pytest.mark.parametrize(("code", "complaint"), BROKEN_POLICIES.values(), ids=BROKEN_POLICIES)
def test_a_policy_that_breaks_its_contract_is_refused_in_one_line(install: Install, code: str, complaint: str) -> None:
    install("broken_policy", code, "[joulie.policies]\nbroken = broken_policy:P\n")
    with pytest.raises(PluginError) as raised:
        plugins.policy("broken")
    message = str(raised.value)
    assert message.startswith("policy broken (broken_policy:P) ")
    assert complaint in message
    assert "\n" not in message


BROKEN_COOLING = {
    "is no factory": ("C = 3", "is not a class or function"),
    "takes no settings": ("class C:\n    name = 'c'", "cannot be made: TypeError"),
    "has no stress": ("class C:\n    name = 'c'\n    def __init__(self, settings): ...", "has no method `stress`"),
}


@pytest.mark.parametrize(("code", "complaint"), BROKEN_COOLING.values(), ids=BROKEN_COOLING)
def test_a_cooling_model_that_breaks_its_contract_is_refused_in_one_line(
    install: Install, code: str, complaint: str
) -> None:
    install("broken_cooling", code, "[joulie.cooling]\nbroken = broken_cooling:C\n")
    with pytest.raises(PluginError, match=r"^cooling model broken \(broken_cooling:C\) ") as raised:
        plugins.cooling("broken", TwinSettings())
    assert complaint in str(raised.value)


def test_a_broken_policy_does_not_stop_the_others(install: Install) -> None:
    install("broken_policy", "raise RuntimeError", "[joulie.policies]\nbroken = broken_policy:P\n")
    assert "broken" in plugins.policy_names()
    assert plugins.policy("static_partition").name == "static_partition"
    assert "broken_policy" not in sys.modules


def test_a_name_that_two_packages_claim_is_refused(install: Install) -> None:
    install("usurper", "", "[joulie.policies]\nstatic_partition = usurper:P\n")
    with pytest.raises(PluginError, match=r"more than once: joulie.control.*, usurper:P"):
        plugins.policy("static_partition")


def test_an_error_that_a_cooling_model_words_itself_arrives_as_it_is(install: Install) -> None:
    code = "from joulie.errors import InputError\ndef make(settings):\n    raise InputError('COOLING_X: missing')"
    install("picky", code, "[joulie.cooling]\npicky = picky:make\n")
    with pytest.raises(JoulieError, match=r"^COOLING_X: missing$"):
        plugins.cooling("picky", TwinSettings())


@pytest.mark.parametrize("module", ["importlib.metadata", "numpy"])
def test_importing_the_lookup_loads_nothing_slow(module: str) -> None:
    script = f"import sys, joulie.plugins; print({module!r} in sys.modules)"
    outcome = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() == "False"
