"""The FMU cooling model, on real FMUs that pythonfmu builds from Python."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from joulie import plugins
from joulie.control.cycle import decide
from joulie.control.policies.static_partition import StaticPartition
from joulie.errors import InputError, PluginError, SettingError
from joulie.model.snapshot import Node, Snapshot
from joulie.physics.cooling import LinearCoolingModel
from joulie.settings import DecisionSettings, TwinSettings, load
from joulie.sources.fmu_cooling import FmuCoolingModel
from tests.support.howto_pages import files_of, joulie

LINEAR = files_of("cooling.md")["linear_cooling.py"]
# Heat that piles up over ten steps: leaves traces in an FMU that is not started anew.
WARMING = """
from pythonfmu import DefaultExperiment, Fmi2Causality, Fmi2Slave, Real

class Warming(Fmi2Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.default_experiment = DefaultExperiment(start_time=0.0, stop_time=5.0, step_size=0.5)
        self.nodePowerW, self.ambientC, self.coolingStress = 0.0, 20.0, 0.0
        self.register_variable(Real("nodePowerW", causality=Fmi2Causality.input))
        self.register_variable(Real("ambientC", causality=Fmi2Causality.input))
        self.register_variable(Real("coolingStress", causality=Fmi2Causality.output))

    def do_step(self, current_time, step_size):
        if self.nodePowerW == 13:
            raise RuntimeError("unlucky")
        self.coolingStress += self.nodePowerW / 1000 * step_size
        if self.nodePowerW == 99:
            self.coolingStress = float("nan")
        return True
"""
NO_OUTPUT = LINEAR.replace('Real("coolingStress", causality=Fmi2Causality.output)', 'Real("coolingStress")')
NO_AMBIENT = LINEAR.replace('"ambientC"', '"coolingStress2"').replace("self.ambientC", "self.coolingStress2")


def built(code: str, folder: Path) -> str:
    if (sys.platform, platform.machine()) not in (("linux", "x86_64"), ("win32", "AMD64")):
        pytest.skip("pythonfmu ships its binary for Linux and Windows on x86-64 only")
    script = folder / f"model_in_{folder.name}.py"  # FMUs of one process share an interpreter: names must differ
    script.write_text(code)
    build = [sys.executable, "-m", "pythonfmu", "build", "-f", str(script), "-d", str(folder)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (fmu,) = folder.glob("*.fmu")
    return str(fmu)


@pytest.fixture(scope="module")
def linear_fmu(tmp_path_factory: pytest.TempPathFactory) -> str:
    return built(LINEAR, tmp_path_factory.mktemp("linear"))


@pytest.fixture(scope="module")
def warming_fmu(tmp_path_factory: pytest.TempPathFactory) -> str:
    return built(WARMING, tmp_path_factory.mktemp("warming"))


def model(path: str) -> FmuCoolingModel:
    return FmuCoolingModel(TwinSettings(cooling_fmu_path=path))


def test_an_fmu_of_the_linear_model_gives_the_seeds_31_3(linear_fmu: str) -> None:
    stress = model(linear_fmu).stress(1440.0, 25.0)
    assert float(stress) == pytest.approx(31.3)


def test_an_fmu_of_the_linear_model_agrees_with_the_built_in_one_on_arrays(linear_fmu: str) -> None:
    power_w, air_c = np.meshgrid(np.linspace(0, 8000, 17), np.linspace(-5, 45, 11))
    by_fmu, by_formula = (m.stress(power_w, air_c) for m in (model(linear_fmu), LinearCoolingModel(TwinSettings())))
    assert by_fmu.shape == power_w.shape
    np.testing.assert_allclose(by_fmu, by_formula, rtol=0, atol=1e-9)


def test_a_single_temperature_goes_with_many_powers_and_none_with_none(linear_fmu: str) -> None:
    fmu = model(linear_fmu)
    np.testing.assert_allclose(fmu.stress(np.array([0.0, 4000.0]), 20.0), [0, 80])
    assert fmu.stress(np.array([]), np.array([])).shape == (0,)


def test_each_distinct_pair_is_simulated_once(linear_fmu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[float, float]] = []
    simulate = FmuCoolingModel._simulate

    def counted(self: FmuCoolingModel, power_w: float, air_c: float) -> float:
        asked.append((power_w, air_c))
        return simulate(self, power_w, air_c)

    monkeypatch.setattr(FmuCoolingModel, "_simulate", counted)
    stress = model(linear_fmu).stress(np.array([4000.0, 2000.0] * 500), np.array([20.0, 30.0] * 500))
    np.testing.assert_allclose(stress, [80, 45] * 500)
    assert sorted(asked) == [(2000, 30), (4000, 20)]


def test_the_answer_depends_on_the_inputs_alone(warming_fmu: str) -> None:
    fmu = model(warming_fmu)
    # 0.5 s × 10 steps × 2 kW; a trace of the first run would add to the second.
    assert [float(fmu.stress(watts, 20.0)) for watts in (2000.0, 2000.0, 4000.0, 2000.0)] == [10, 10, 20, 10]
    assert fmu.stress(np.array([4000.0, 2000.0]), np.array([20.0, 20.0])).tolist() == [20, 10]
    assert float(model(warming_fmu).stress(2000.0, 20.0)) == 10


REFERENCE_NODE = Node(
    "a",
    {
        "joulie.io/managed": "true",
        "joulie.io/hw.cpu-model": "EPYC-9654",
        "joulie.io/hw.cpu-sockets": "2",
        "joulie.io/hw.gpu-model": "NVIDIA-H100-NVL",
        "joulie.io/hw.gpu-count": "4",
    },
)


def test_decide_takes_an_fmu_that_the_settings_name(linear_fmu: str) -> None:
    env = {"COOLING_MODEL": "fmu", "COOLING_FMU_PATH": linear_fmu, "AMBIENT_TEMP_C": "25", "STATIC_HP_FRAC": "0"}
    settings = load(DecisionSettings, env)
    cooling = plugins.cooling(settings.twin.cooling_model, settings.twin)
    assert cooling.name == "fmu"

    plan = decide(Snapshot({"a": REFERENCE_NODE}), settings, 0.0, policy=StaticPartition(), cooling=cooling)

    status = plan.twins.status(0)
    assert status.predicted_cooling_stress_score == pytest.approx(31.3)
    assert status.predicted_power_headroom_score == pytest.approx(0.6 * (1 - 0.313) * 100)


def test_the_command_line_takes_an_fmu_and_prints_nothing_but_json(linear_fmu: str, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(files_of("policy.md")["cluster.yaml"])
    arguments = ("twin", "-f", str(cluster), "--now", "2026-11-01T12:00:00Z", "-o", "json")
    by_fmu = joulie(*arguments, packages=tmp_path, COOLING_MODEL="fmu", COOLING_FMU_PATH=linear_fmu)
    by_formula = joulie(*arguments, packages=tmp_path)
    assert by_fmu.returncode == 0, by_fmu.stderr
    assert by_fmu.stdout == by_formula.stdout
    assert '"predictedCoolingStressScore"' in by_fmu.stdout


def test_without_a_path_the_setting_is_named() -> None:
    with pytest.raises(SettingError, match=r"^COOLING_FMU_PATH='' cannot be used: allowed is the path of an FMU"):
        model("")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^COOLING_FMU_PATH=.*none\.fmu: no such file$"):
        model(str(tmp_path / "none.fmu"))


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 cut off"])
def test_a_file_that_is_no_fmu_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "broken.fmu"
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"^COOLING_FMU_PATH=.*broken\.fmu: cannot be used as an FMU: .+$") as raised:
        model(str(file))
    assert "\n" not in str(raised.value)


def test_an_fmu_without_the_output_is_told_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no output coolingStress; it needs the inputs nodePowerW and ambientC"):
        model(built(NO_OUTPUT, tmp_path))


def test_an_fmu_without_an_input_is_told_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no input ambientC; it needs"):
        model(built(NO_AMBIENT, tmp_path))


def test_an_fmu_with_an_endless_experiment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has 10000000 steps; at most 10000 are supported"):
        model(built(WARMING.replace("stop_time=5.0", "stop_time=5000000.0"), tmp_path))


@pytest.mark.parametrize(
    ("watts", "complaint"),
    [(13.0, "failed at 13 W and 20 °C: fmi2DoStep failed"), (99.0, "coolingStress is nan at 99 W")],
)
def test_an_fmu_that_fails_is_said_in_one_line(warming_fmu: str, watts: float, complaint: str) -> None:
    with pytest.raises(PluginError) as raised:
        model(warming_fmu).stress(watts, 20.0)
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


def test_after_a_fatal_error_nothing_more_is_called_on_the_fmu(warming_fmu: str) -> None:
    """FMI forbids every call then, and freeing such an instance ends the process."""
    script = (
        "import gc, sys; from joulie.errors import PluginError; from joulie.settings import TwinSettings\n"
        "from joulie.sources.fmu_cooling import FmuCoolingModel\n"
        "for _ in range(5):\n"
        "    model = FmuCoolingModel(TwinSettings(cooling_fmu_path=sys.argv[1]))\n"
        "    for watts in (13.0, 2000.0):\n"
        "        try: model.stress(watts, 20.0)\n"
        "        except PluginError as error: said = str(error)\n"
        "    del model; gc.collect()\n"
        "print(said)"
    )
    done = subprocess.run([sys.executable, "-c", script, warming_fmu], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("failed fatally before and cannot be used again")


def test_without_fmpy_the_remedy_is_named(linear_fmu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fmpy", None)
    with pytest.raises(PluginError, match=r"pip install 'joulie\[fmu\]'"):
        model(linear_fmu)


def test_unpacked_files_go_with_the_model(linear_fmu: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    fmu = model(linear_fmu)
    assert list(tmp_path.glob("joulie-fmu-*"))
    del fmu
    assert not list(tmp_path.glob("joulie-fmu-*"))
