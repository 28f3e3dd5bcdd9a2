"""What tests of code from outside call in a process of its own."""

from __future__ import annotations

import random
from importlib import import_module
from typing import Any

from joulie.lab.simulation.user_code import given, given_policy


def capped(name: str, progress: object) -> Any:
    """What the module beside the policy says, as a run sees it."""
    assert given_policy(name) is not None
    return import_module("beside_it").CAPPED


def capped_and_dice(name: str, progress: object) -> tuple[Any, float]:
    """The same, and the first throw of dice; then both are left otherwise."""
    found = capped(name, progress)
    vars(import_module("beside_it"))["CAPPED"] = ()
    return found, random.random()


def scheduler(name: str, progress: object) -> bool:
    return given("scheduler", name, "rank") is not None
