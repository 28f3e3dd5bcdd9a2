"""A cooling model exported from a simulation tool as a Functional Mock-up Unit (FMU).

Each pair of node power and air temperature is simulated from the FMU's initial state with inputs held constant, over
its default experiment, so that the result depends on the inputs alone. FMPy does the stepping; it is loaded only if
this model is configured.
"""

from __future__ import annotations

import contextlib
import io
import math
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from joulie.errors import InputError, JoulieError, PluginError, SettingError
from joulie.physics.cooling import Numbers
from joulie.settings import TwinSettings

VARIABLE = "COOLING_FMU_PATH"
INPUTS = ("nodePowerW", "ambientC")
OUTPUT = "coolingStress"
MAX_STEPS = 10_000
_FLOAT_TYPES = ("Real", "Float64")  # as FMI 2.0 and FMI 3.0 call it
_FATAL = 4  # the status after which the standard allows no further call; FMUs crash the process otherwise


class FmuExperiment(NamedTuple):
    """Start time, step size and number of steps."""

    start_s: float
    step_s: float
    steps: int


class FmuLog:
    """The last message of an FMU: FMPy's errors name only a function, the FMU gives the reason."""

    def __init__(self) -> None:
        self.last = ""

    def note(self, *arguments: Any) -> None:
        """Called by FMI 2.0 and 3.0 with different arguments, of which the last is the message."""
        message = arguments[-1]
        self.last = message.decode(errors="replace")[:200] if isinstance(message, bytes) else ""


class Instance:
    """A running FMU, and which calls its state allows."""

    def __init__(self, fmu: Any) -> None:
        self.fmu = fmu
        self.is_fresh = True  # not simulated yet
        self.has_stepped = False  # the last simulation finished
        self.is_lost = False  # it failed fatally

    def release(self) -> None:
        """Frees it as far as the standard allows in its state."""
        if self.is_lost:
            return
        if self.has_stepped:
            with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
                self.fmu.terminate()
        with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
            self.fmu.freeInstance()


class FmuCoolingModel:
    """`stress` of an FMU (co-simulation, FMI 2.0 or 3.0) with inputs nodePowerW and ambientC, output coolingStress."""

    name = "fmu"

    def __init__(self, settings: TwinSettings) -> None:
        path = settings.cooling_fmu_path
        if not path:
            raise SettingError(VARIABLE, path, "the path of an FMU file, which COOLING_MODEL=fmu needs")
        self._origin = f"{VARIABLE}={path}"
        self._log = FmuLog()
        if not Path(path).is_file():
            raise InputError(f"{self._origin}: no such file")
        fmpy = _fmpy()
        with _complaints(InputError, f"{self._origin}: cannot be used as an FMU"):
            description = fmpy.read_model_description(path)
        if description.coSimulation is None or description.fmiVersion == "1.0":
            raise InputError(f"{self._origin}: is not an FMU for co-simulation (FMI 2.0 or 3.0)")
        self._inputs = [_reference(description, name, "input", self._origin) for name in INPUTS]
        self._output = [_reference(description, OUTPUT, "output", self._origin)]
        self._experiment = _experiment(description, self._origin)
        self._is_fmi3 = description.fmiVersion.startswith("3")
        self._instance = self._instantiate(fmpy, path, description)

    def stress(self, node_power_w: ArrayLike, ambient_c: ArrayLike) -> Numbers:
        """Takes numbers and arrays; simulates each distinct pair once."""
        power_w, air_c = np.broadcast_arrays(
            np.asarray(node_power_w, dtype=np.float64), np.asarray(ambient_c, dtype=np.float64)
        )
        pairs = np.stack([power_w.ravel(), air_c.ravel()], axis=1)
        distinct, position = np.unique(pairs, axis=0, return_inverse=True)
        results = np.array([self._simulate(watts, degrees) for watts, degrees in distinct.tolist()], dtype=np.float64)
        return np.asarray(results[position.ravel()].reshape(power_w.shape))

    def _simulate(self, power_w: float, air_c: float) -> float:
        instance = self._instance
        if instance.is_lost:
            raise PluginError(f"{self._origin}: failed fatally before and cannot be used again")
        with _complaints(PluginError, f"{self._origin}: failed at {power_w:g} W and {air_c:g} °C", self._log):
            try:
                if not instance.is_fresh:
                    instance.fmu.reset()
                instance.is_fresh = instance.has_stepped = False
                stress = self._run(instance.fmu, [power_w, air_c])
                instance.has_stepped = True
            except Exception as error:
                instance.is_lost = getattr(error, "status", None) == _FATAL
                raise
        if not math.isfinite(stress):
            raise PluginError(f"{self._origin}: {OUTPUT} is {stress} at {power_w:g} W and {air_c:g} °C")
        return stress

    def _run(self, fmu: Any, inputs: list[float]) -> float:
        """The output at the end of the experiment."""
        start_s, step_s, steps = self._experiment
        if self._is_fmi3:
            fmu.enterInitializationMode(startTime=start_s)
            set_values, get_values = fmu.setFloat64, fmu.getFloat64
        else:
            fmu.setupExperiment(startTime=start_s)
            fmu.enterInitializationMode()
            set_values, get_values = fmu.setReal, fmu.getReal
        set_values(self._inputs, inputs)
        fmu.exitInitializationMode()
        for step in range(steps):
            set_values(self._inputs, inputs)
            fmu.doStep(currentCommunicationPoint=start_s + step * step_s, communicationStepSize=step_s)
        return float(get_values(self._output)[0])

    def _instantiate(self, fmpy: ModuleType, path: str, description: Any) -> Instance:
        """A running instance, removed with its unpacked files when this model is garbage collected."""
        folder = tempfile.mkdtemp(prefix="joulie-fmu-")
        remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        try:
            with _complaints(InputError, f"{self._origin}: cannot be started", self._log):
                fmpy.extract(path, folder)
                fmu = fmpy.instantiate_fmu(folder, description, fmi_type="CoSimulation", logger=self._log.note)
        except JoulieError:
            remove()
            raise
        instance = Instance(fmu)
        weakref.finalize(self, instance.release)  # before the folder is removed: finalizers run last in, first out
        return instance


def _fmpy() -> ModuleType:
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints if its helper library is missing
            import fmpy
            import fmpy.simulation
    except ImportError as error:
        raise PluginError(f"COOLING_MODEL=fmu needs FMPy ({error}); run: pip install 'joulie[fmu]'") from None
    found: ModuleType = fmpy
    return found


@contextlib.contextmanager
def _complaints(kind: type[JoulieError], what: str, log: FmuLog | None = None) -> Iterator[None]:
    """FMPy and FMUs raise any exception and print: turned into one line, with standard output kept clean."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    except Exception as error:
        said = [str(error) or type(error).__name__, *([log.last] if log and log.last else [])]
        raise kind(f"{what}: {' '.join(': '.join(said).split())}") from error


def _reference(description: Any, name: str, causality: str, origin: str) -> int:
    for variable in description.modelVariables:
        if variable.name == name and variable.causality == causality and variable.type in _FLOAT_TYPES:
            return int(variable.valueReference)
    needed = f"it needs the inputs {' and '.join(INPUTS)} and the output {OUTPUT}, all real numbers"
    raise InputError(f"{origin}: has no {causality} {name}; {needed}")


def _experiment(description: Any, origin: str) -> FmuExperiment:
    """The FMU's default experiment, or one step of a second."""
    default = description.defaultExperiment
    given = [None if default is None else getattr(default, name) for name in ("startTime", "stopTime", "stepSize")]
    start_s, stop_s, step_s = (None if text is None else float(text) for text in given)
    start_s = start_s or 0.0
    if stop_s is None or stop_s <= start_s:
        return FmuExperiment(start_s, step_s or 1.0, 1)
    step_s = step_s or (stop_s - start_s)
    steps = max(1, round((stop_s - start_s) / step_s))
    if steps > MAX_STEPS:
        raise InputError(f"{origin}: its default experiment has {steps} steps; at most {MAX_STEPS} are supported")
    return FmuExperiment(start_s, step_s, steps)
