"""The text of an experiment's file, TOML or YAML, as keys and values; in its short form where that is asked for."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from joulie.errors import InputError
from joulie.lab.overriding import merged

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
    from joulie.cluster.yaml_documents import YamlError, documents

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
