"""What a setup names is there: settings, policy, scheduler, hardware. Said before anything runs, by file and key."""

from __future__ import annotations

from difflib import get_close_matches

from joulie import plugins
from joulie.errors import InputError, SettingError
from joulie.lab.capacity import kinds
from joulie.lab.ranking import BUILT_IN
from joulie.lab.setup import RunSetup
from joulie.settings import COMPONENTS, ExtenderSettings, OperatorSettings, describe, load
from joulie.sources.catalogue_file import read_catalogue

OF_THE_LAB = ("none", "uniform")


def check_setup(setup: RunSetup, place: str) -> None:
    """InputError names what is wrong; `place` is the file, and the variant where there are some."""
    try:
        _check_settings(environment(setup))
        _check_one_of("policy.name", setup.policy.name, [*OF_THE_LAB, *plugins.policy_names()])
        _check_one_of("scheduler", setup.scheduler, BUILT_IN)
        kinds(setup.cluster, read_catalogue(str(setup.settings.get("HARDWARE_CATALOG_PATH", ""))))
    except SettingError as error:
        raise InputError(f"{place}: settings.{error}") from None
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def environment(setup: RunSetup) -> dict[str, str]:
    """`settings` as environment variables."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in setup.settings.items()
    }


def _check_settings(env: dict[str, str]) -> None:
    """Names and values as operator and extender would take them."""
    known = {one.variable for name in ("operator", "extender") for one in describe(COMPONENTS[name], {})}
    for variable in env:
        if variable == "POLICY_TYPE":
            raise InputError("settings.POLICY_TYPE: stands under policy.name here")
        if variable not in known:
            close = get_close_matches(variable, known, n=1)
            raise InputError(f"settings.{variable}: is no setting{f'; {close[0]}?' if close else ''}")
    load(OperatorSettings, env)
    load(ExtenderSettings, env)


def _check_one_of(key: str, name: str, known: list[str] | tuple[str, ...]) -> None:
    if ":" not in name and name not in known:
        raise InputError(f"{key}: {name!r} is none of {', '.join(known)}, nor a `module:object`")
