"""Compiles the stand-in libraries."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
LIBRARY_NAMES = {"nvml": "libnvidia-ml.so.1", "amdsmi": "libamd_smi.so"}


def compiler() -> list[str] | None:
    """A C compiler's command, if there is one."""
    for name in ("cc", "gcc", "clang"):
        if found := shutil.which(name):
            return [found]
    return [sys.executable, "-m", "ziglang", "cc"] if importlib.util.find_spec("ziglang") else None


def compile_library(name: str, command: list[str], folder: Path) -> Path:
    """The folder with the library in it, ready for LD_LIBRARY_PATH."""
    sources = [HERE / f"{name}.c"]
    if name == "amdsmi":
        sources.append(folder / "unsupported.c")
        sources[-1].write_text(_unsupported(sources[0].read_text()))
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-I", str(HERE)]
    target = folder / LIBRARY_NAMES[name]
    subprocess.run([*command, *flags, *map(str, sources), "-o", str(target)], check=True)
    return folder


def amdsmi_symbols() -> set[str]:
    """Every function that the installed binding looks up when it is imported."""
    spec = importlib.util.find_spec("amdsmi")
    assert spec is not None
    assert spec.origin is not None
    wrapper = Path(spec.origin).with_name("amdsmi_wrapper.py").read_text()
    return set(re.findall(r"_libraries\['libamd_smi\.so'\]\.(\w+)", wrapper))


def _unsupported(source: str) -> str:
    """A function that answers "not supported" for each symbol that the stand-in does not have itself."""
    has = set(re.findall(r"(?m)^int (\w+)\(", source))
    return "".join(f"int {name}(void) {{ return 2; }}\n" for name in sorted(amdsmi_symbols() - has))
