"""Schedulers and policies from outside Joulie, as they are run: from the sources that the run's key names.

Only in a process of its own (see `runs.processes`): nothing that an earlier run left behind, that this process has
imported before or that was edited since can change a result.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from operator import attrgetter
from types import CodeType, ModuleType
from typing import Any, cast

import numpy as np

from joulie.control.policies.interface import Policy
from joulie.errors import PluginError
from joulie.lab.simulation.user_sources import Module, OwnModules, is_own, is_shared, root_of


@contextmanager
def load_only(own: OwnModules) -> Iterator[None]:
    """From now on these modules are found first, whatever is installed or lies beside them; no others may be used."""
    if not own:
        yield
        return
    finder = _Finder(own)
    for name in finder.loaded():
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    random.seed(0)  # unseeded randomness is the same in every run
    np.random.seed(0)  # noqa: NPY002
    yield
    finder.refuse_unseen()


def given_policy(name: str) -> Policy | None:
    """The policy that `module:object` names; None for a registered name."""
    if ":" not in name:
        return None
    found = given("policy", name, "plan")
    if not isinstance(getattr(found, "name", None), str):
        raise PluginError(f"policy {name} has no `name`, a text that tells it from others")
    return cast(Policy, found)


def given(what: str, name: str, method: str) -> Any:
    """The object that `module:object` names, a class called without arguments; it must have the method."""
    module, _, attribute = name.partition(":")
    try:
        found: Any = attrgetter(attribute)(import_module(module))
        found = found() if isinstance(found, type) else found
    except Exception as error:  # code from outside may raise anything
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        if isinstance(error, ModuleNotFoundError) and error.name in (module, module.partition(".")[0]):
            reason = f"there is no {module}.py beside the experiment, nor is {module} installed"
        elif module in sys.stdlib_module_names:
            reason += f"; {module} is a module of Python's own: call yours otherwise"
        raise PluginError(f"{what} {name} cannot be loaded: {reason}") from error
    if not callable(getattr(found, method, None)):
        raise PluginError(f"{what} {name} has no method `{method}`")
    return found


class _Loader(SourceFileLoader):
    """Compiles what was read then, not what the file or a cache beside it holds now."""

    def __init__(self, name: str, module: Module) -> None:
        super().__init__(name, module.file)
        self._source = module.source

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._source, self.path)


class _Finder:
    """Knows the user's modules by name."""

    def __init__(self, own: OwnModules) -> None:
        self.own = own
        self._tops = {name.split(".")[0] for name in own}
        self._roots = {root for name, module in own.items() if not is_shared(root := root_of(name, module))}

    def find_spec(self, name: str, _path: Sequence[str] | None, _target: object = None) -> ModuleSpec | None:
        module = self.own.get(name)
        return spec_from_file_location(name, module.file, loader=_Loader(name, module)) if module else None

    def refuse_unseen(self) -> None:
        """A module whose content is not in the run's key must not have had a part in it."""
        for name in self.loaded():
            if name not in self.own:
                where = getattr(sys.modules[name], "__file__", None) or name
                raise PluginError(
                    f"{where}: its changes would go unnoticed: user code must be Python source that an import "
                    f"statement names, as in: import {name}"
                )

    def loaded(self) -> list[str]:
        """Of what is imported: these modules, others of their names, and all that lies beside them."""
        return [name for name, module in sys.modules.items() if is_own(name) and self._is_beside(name, module)]

    def _is_beside(self, name: str, module: ModuleType | None) -> bool:
        if name.split(".", maxsplit=1)[0] in self._tops:
            return True
        base, file = name.replace(".", "/"), getattr(module, "__file__", None)
        return any(file in (f"{root}/{base}.py", f"{root}/{base}/__init__.py") for root in self._roots)
