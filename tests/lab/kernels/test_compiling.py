"""What is kept compiled between processes is never older than the sources, wherever it is kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import joulie

KERNEL = """
from joulie.lab.kernels.compiling import entry
from joulie.plant.work import felt_speed


@entry
def felt(speed, sensitivity):
    return felt_speed(speed, sensitivity)


print(felt(0.5, 1.0))
"""
BEFORE, AFTER = "return 1.0 / (1.0 + sensitivity", "return 2.0 / (1.0 + sensitivity"


@pytest.mark.slow
@pytest.mark.parametrize("variable", ["NUMBA_CACHE_DIR", "XDG_CACHE_HOME"])
def test_a_formula_that_was_edited_is_compiled_anew_wherever_results_are_kept(tmp_path: Path, variable: str) -> None:
    """numba itself looks only at the file of the function that is called, not at those of the formulas in it."""
    copy, kept = tmp_path / "copy", tmp_path / "kept"
    shutil.copytree(Path(joulie.__file__).parent, copy / "joulie", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "kernel.py").write_text(KERNEL, encoding="utf-8")
    formula = copy / "joulie" / "plant" / "work.py"
    env = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    env |= {variable: str(kept), "PYTHONPATH": str(copy)}

    def felt() -> float:
        run = [sys.executable, str(copy / "kernel.py")]
        return float(subprocess.run(run, env=env, capture_output=True, text=True, check=True, timeout=300).stdout)

    assert felt() == 0.5
    assert list(kept.rglob("*.nbi"))  # else nothing is proven
    formula.write_text(formula.read_text(encoding="utf-8").replace(BEFORE, AFTER), encoding="utf-8")

    assert felt() == 1.0
