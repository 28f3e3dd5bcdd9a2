"""Sources of a user's schedulers, policies and cooling models, with all that they import from the same folder.

They are read when the experiment is. What was read decides a run's key, travels with it, and is what is run.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec, resolve_name
from pathlib import Path

from msgspec import Struct

from joulie.errors import InputError
from joulie.lab.model.setup import RunSetup
from joulie.plugins import COOLING_GROUP, POLICY_GROUP

NOT_USER_CODE = sys.stdlib_module_names | {"joulie", "__main__"}
PACKAGE = "__init__.py"


class Module(Struct, frozen=True):
    """One file as it was when the experiment was read."""

    file: str
    source: bytes


OwnModules = dict[str, Module]  # by the name that they are imported under


def own_modules(setup: RunSetup, folder: Path) -> OwnModules:
    """What the setup names by `module:object` or has installed; in the experiment's folder first."""
    found: OwnModules = {}
    for name in _named(setup):
        root = folder if _file(folder, name) else _installed(name)
        if root is not None and is_own(name):
            _collect(name, root, found)
    return found


def is_own(name: str) -> bool:
    return name.split(".", maxsplit=1)[0] not in NOT_USER_CODE


def is_shared(root: Path) -> bool:
    """Whether packages are installed there, so that neighbours have nothing to do with each other."""
    return root.name in ("site-packages", "dist-packages") or any(root.glob("*.dist-info"))


def root_of(name: str, module: Module) -> Path:
    """The folder in which the module is found under that name."""
    path = Path(module.file)
    return (path.parent if path.name == PACKAGE else path).parents[name.count(".")]


def _named(setup: RunSetup) -> Iterator[str]:
    for name in (setup.scheduler, setup.policy.name):
        if ":" in name:
            yield name.partition(":")[0]
    registered = ((POLICY_GROUP, setup.policy.name), (COOLING_GROUP, setup.environment.get("COOLING_MODEL", "")))
    for group, name in registered:
        yield from (entry.module for entry in entry_points(group=group, name=name))


def _installed(name: str) -> Path | None:
    """The folder in which the module's package or file lies; None where it is nowhere to be found."""
    try:
        spec = find_spec(name.split(".", maxsplit=1)[0])
    except (ImportError, ValueError):
        return None  # reported when it is run
    places = [*(spec.submodule_search_locations or ()), spec.origin] if spec else []
    return Path(places[0]).parent if places and places[0] else None


def _collect(name: str, root: Path, found: OwnModules) -> None:
    """The module and, one after the other, what it imports from the same folder."""
    top = name.split(".", maxsplit=1)[0]
    left = [name]
    while left:
        name = left.pop()
        if not is_own(name) or _file(root, name) is None or (is_shared(root) and name.split(".")[0] != top):
            continue
        parts = name.split(".")
        for part in (".".join(parts[:count]) for count in range(1, len(parts) + 1)):
            if part not in found:
                found[part] = module = _read(root, part)
                left += _imported(module.source, part if module.file.endswith(PACKAGE) else part.rpartition(".")[0])


def _file(root: Path, name: str) -> Path | None:
    base = root.joinpath(*name.split("."))
    return next((path for path in (base / PACKAGE, base.with_name(f"{base.name}.py")) if path.is_file()), None)


def _read(root: Path, name: str) -> Module:
    """A folder without a file of its own is an empty package."""
    path = _file(root, name)
    try:
        return Module(str(path or root.joinpath(*name.split("."), PACKAGE)), path.read_bytes() if path else b"")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _imported(source: bytes, package: str) -> Iterator[str]:
    """Names of modules in import statements, wherever they stand; of some, whether they are modules is seen later."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return  # reported when it is run
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            try:
                base = resolve_name("." * node.level + (node.module or ""), package or None)
            except ImportError:
                continue
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            parts = name.split(".")
            yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))
