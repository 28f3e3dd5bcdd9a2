"""Python functions compiled by numba, kept compiled between processes.

numba looks only at a function's own file when it decides whether a kept result is still good, but what is compiled here
calls formulas of `control` and `plant`. So results are kept in a folder that is named after all sources that can be
compiled: an edited formula takes effect at once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import joulie
from joulie.errors import JoulieError

F = TypeVar("F", bound=Callable[..., Any])

COMPILED = ("lab/kernels/**/*.py", "lab/model/*.py", "plant/**/*.py", "control/**/*.py", "physics/**/*.py")


KEPT, OLD_S = "compiled-", 30 * 86_400.0


class MissingExtraError(JoulieError):
    """The lab needs more packages than the rest of Joulie."""


def compiled(function: F) -> F:
    """The function as machine code, with the formulas that it calls: the same arithmetic, digit by digit.

    For other compiled code alone; Python calls an `entry`. That nearly halves the time it takes to compile.
    """
    done: F = _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    return done


def inlined(function: F) -> F:
    """The same, inlined into its callers: for what is called a hundred million times."""
    done: F = _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)
    return done


def formula(function: Callable[..., Any]) -> Any:
    """A formula that is written for arrays, for single numbers."""
    return compiled(function)


def summed(formulas: Sequence[Callable[..., Any]]) -> Any:
    """One formula that adds up several of the same arguments, from the first to the last."""
    total, name = inlined(formulas[0]), "sum"
    for formula in formulas[1:]:
        name += "_" + formula.__module__.rpartition(".")[2]
        known = {"__name__": __name__, "before": total, "after": inlined(formula)}
        both = FunctionType(_both.__code__, known, name)
        both.__qualname__ = name  # numba keeps a result by this name
        total = inlined(both)
    return total


def _both(*arguments: Any) -> Any:
    return before(*arguments) + after(*arguments)  # type: ignore[name-defined] # noqa: F821 - `summed` says what


def entry(function: F) -> F:
    """The same for what Python calls. Under a name of its own: numba would take one kept result for the other."""
    other = FunctionType(function.__code__, function.__globals__, f"{function.__name__}_entry", function.__defaults__)
    other.__qualname__ = f"{function.__qualname__}_entry"
    done: F = _compiled(other)
    return done


@cache
def _compiled(function: Any, **options: bool) -> Any:
    known = function.__globals__
    formulas = {name: known[name] for name in function.__code__.co_names if _is_ours(known.get(name))}
    if formulas:  # a copy that calls their compiled twins
        known = known | {name: _compiled(formula, **options) for name, formula in formulas.items()}
        function = FunctionType(function.__code__, known, function.__name__, function.__defaults__)
    return _numba().njit(cache=True, error_model="numpy", **options)(function)


def _is_ours(value: object) -> bool:
    return isinstance(value, FunctionType) and value.__module__.startswith("joulie.")


@cache
def _numba() -> Any:
    try:
        import numba
    except ImportError:
        raise MissingExtraError("joulie lab needs its extra packages: pip install 'joulie[lab]'") from None
    chosen = os.environ.get("NUMBA_CACHE_DIR")  # says where, never that stale results will do
    kept = Path(chosen) if chosen else _user_cache() / "joulie"
    numba.config.CACHE_DIR = str(kept / f"{KEPT}{_sources_digest()}")  # type: ignore[attr-defined]
    _forget_old(kept)
    return numba


def _forget_old(kept: Path) -> None:
    """Remove caches of other versions to which nothing was added for a month."""
    for folder in kept.glob(f"{KEPT}*"):
        if folder.stat().st_mtime < time.time() - OLD_S:
            shutil.rmtree(folder, ignore_errors=True)


def _user_cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return Path(home) if home else Path.home() / ".cache"


def _sources_digest() -> str:
    digest = hashlib.sha256(sys.version.encode())
    root = Path(joulie.__file__).parent
    for pattern in COMPILED:
        for path in sorted(root.glob(pattern)):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
