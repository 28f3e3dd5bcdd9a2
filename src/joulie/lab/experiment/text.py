"""The text of an experiment's file, TOML or YAML, as keys and values; variants and a short form override some."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import msgspec

from joulie.errors import InputError

SHORT_FORM = "# In its short form.\n"  # the first line of a text whose `short` counts


def content_of(text: str, filename: str) -> dict[str, Any]:
    """InputError in one line that names the file."""
    content = _read(text, filename)
    short = content.get("short", {})
    if not text.startswith(SHORT_FORM) or not isinstance(short, dict):
        return content
    return with_overrides(content, short, f"{filename}: short")


def _read(text: str, filename: str) -> dict[str, Any]:
    if filename.endswith(".toml"):
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{filename}: {error}") from None
    if not filename.endswith((".yaml", ".yml")):
        raise InputError(f"{filename}: an experiment is a .toml, .yaml or .yml file")
    from joulie.cluster.files.yaml_documents import YamlError, documents

    try:
        found = documents(text.encode())
    except YamlError as error:
        raise InputError(f"{filename}: {error}") from None
    if len(found) > 1 or (found and not isinstance(found[0], dict)):
        raise InputError(f"{filename}: an experiment is one document of keys and values")
    return dict(found[0]) if found and isinstance(found[0], dict) else {}


def with_overrides(content: dict[str, Any], overrides: Mapping[str, Any], place: str) -> dict[str, Any]:
    """A copy; keys may have dots."""
    for key, value in overrides.items():
        content = merged(content, key.split("."), value, f"{place}: {key}")
    return content


def combinations(values: Mapping[str, Sequence[Any]], origin: str) -> list[tuple[str, dict[str, Any]]]:
    """Every combination of the values, named by them: `gpu_cap_pct=70, scheduler=most`."""
    for key, several in values.items():
        if not several:
            raise InputError(f"{origin}.{key}: holds no value")
    ends = [key.rsplit(".", 1)[-1] for key in values]
    names = [key if ends.count(end) > 1 else end for key, end in zip(values, ends, strict=True)]
    made = {
        ", ".join(f"{name}={_shown(value)}" for name, value in zip(names, chosen, strict=True)): dict(
            zip(values, chosen, strict=True)
        )
        for chosen in product(*values.values())
    }
    if values and len(made) < prod(len(several) for several in values.values()):
        raise InputError(f"{origin}: a value appears twice")
    return list(made.items()) if values else []


def _shown(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def merged(into: Mapping[str, Any], keys: Sequence[str], value: object, place: str) -> dict[str, Any]:
    """A copy with the value at this place; mappings are merged, everything else is replaced."""
    first, *rest = keys
    there = into.get(first)
    if rest or (isinstance(value, dict) and isinstance(there, dict)):
        if not isinstance(there, dict | None):
            raise InputError(f"{place}: {first} holds {there!r}, which has no keys")
        below = dict(there or {})
        if rest:
            return {**into, first: merged(below, rest, value, place)}
        assert isinstance(value, dict)
        for key, inner in value.items():
            below = merged(below, key.split("."), inner, place)
        return {**into, first: below}
    return {**into, first: value}
