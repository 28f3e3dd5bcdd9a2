"""A GPU capper in its own process, and the world that its library believes in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from joulie.devices import interface
from joulie.devices.interface import Discovered, Knob, Setting, Value

ROOT = Path(__file__).parents[3]
PATIENT_LIMIT_S = 30.0


class World:
    """What the boards are like: the last line with a key counts."""

    def __init__(self, file: Path) -> None:
        self.file = file
        file.touch()

    def say(self, **facts: object) -> None:
        """For all boards and the driver; two underscores stand for a dot."""
        self._append({name.replace("__", "."): fact for name, fact in facts.items()})

    def board(self, number: int, **facts: object) -> None:
        """Of one board."""
        self._append({f"{number}.{name.replace('__', '.')}": fact for name, fact in facts.items()})

    def told(self, key: str) -> int:
        lines = [line.split(" ", 1) for line in self.file.read_text().splitlines()]
        return next(int(value) for name, value in reversed(lines) if name == key)

    def _append(self, facts: Mapping[str, object]) -> None:
        with self.file.open("a") as file:
            file.writelines(f"{key} {fact}\n" for key, fact in facts.items())


class PlayedGpus:
    """Calls the capper in the other process and raises its errors here, by name."""

    def __init__(
        self,
        which: str,
        world: World,
        libraries: Sequence[Path],
        *,
        limit_s: float = PATIENT_LIMIT_S,
        sysfs: Path | None = None,
    ) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("ROCM_", "LD_"))}
        environment |= {
            "JOULIE_STANDIN": str(world.file),
            "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
            "PYTHONPATH": str(ROOT),
        }
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.devices.standin.driver",
                which,
                str(limit_s),
                str(sysfs or world.file.parent),
            ],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.end()
        finally:
            self._process.kill()
            self._process.wait()

    def end(self) -> int:
        """No more calls: the process ends by itself, whatever hangs in it, and has printed nothing of its own."""
        if self._process.stdout is None or self._process.stdout.closed:
            return self._process.returncode
        rest, _ = self._process.communicate(timeout=60)
        self._process.stdout.close()
        assert rest == ""
        return self._process.returncode

    def call(self, method: str, *arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode([method, *arguments]).decode() + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        said = msgspec.json.decode(line)
        if "error" in said:
            raise getattr(interface, said["error"])(said["message"])
        return said["answer"]

    def discover(self) -> Discovered:
        return msgspec.convert(self.call("discover"), Discovered)

    def knobs(self) -> list[Knob]:
        return msgspec.convert(self.call("knobs"), list[Knob])

    def settings(self, target: float, found: Mapping[Knob, Value]) -> list[Setting]:
        return msgspec.convert(self.call("settings", str(target), list(found.items())), list[Setting])

    def restoring(self, found: Mapping[Knob, Value]) -> list[Setting]:
        return msgspec.convert(self.call("restoring", list(found.items())), list[Setting])

    def read(self, knob: Knob) -> Value:
        value: Value = self.call("read", knob)
        return value

    def write(self, knob: Knob, value: Value) -> None:
        self.call("write", knob, value)

    def power_w(self) -> float | None:
        return msgspec.convert(self.call("power_w"), float | None)

    def found(self) -> dict[Knob, Value]:
        return {knob: self.read(knob) for knob in self.knobs()}

    def apply(self, settings: Sequence[Setting]) -> None:
        for setting in settings:
            self.write(setting.knob, setting.value)
