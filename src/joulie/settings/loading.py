"""Settings dataclasses declared with `setting`, filled by `load`, listed by `describe`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from joulie.errors import SettingError
from joulie.settings.parsing import SELECTOR, Parser

T = TypeVar("T")
V = TypeVar("V")


def setting(variable: str, default: str, parser: Parser[V], meaning: str) -> V:
    """A field of a settings dataclass that comes from an environment variable."""
    return dataclasses.field(
        default_factory=lambda: parser.parse(default),
        metadata={"variable": variable, "default": default, "parser": parser, "meaning": meaning},
    )


def group(settings_class: type[V]) -> V:
    """A field of a settings dataclass that is itself a settings dataclass."""
    return dataclasses.field(default_factory=settings_class)


@dataclass(frozen=True, slots=True)
class SettingDescription:
    """One setting for people: what it is called, holds, would hold, may hold and means."""

    variable: str
    value: str
    default: str
    allowed: str
    meaning: str
    is_set: bool


def load(settings_class: type[T], env: Mapping[str, str]) -> T:
    """The settings that these environment variables ask for; SettingError for the first that cannot be used.

    An empty variable counts as unset, except where the empty text itself has a meaning (a selector that takes all).
    """
    hints = get_type_hints(settings_class)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(settings_class):  # type: ignore[arg-type]
        if "variable" not in field.metadata:
            values[field.name] = load(hints[field.name], env)
            continue
        text = _text_of(field, env)
        if text is None:
            continue
        parser: Parser[Any] = field.metadata["parser"]
        try:
            values[field.name] = parser.parse(text)
        except ValueError:
            raise SettingError(field.metadata["variable"], text, parser.allowed) from None
    return settings_class(**values)


def describe(settings_class: type, env: Mapping[str, str]) -> Iterator[SettingDescription]:
    """Every setting of a dataclass in the order of declaration, as the given environment sets it."""
    hints = get_type_hints(settings_class)
    for field in dataclasses.fields(settings_class):
        if "variable" not in field.metadata:
            yield from describe(hints[field.name], env)
            continue
        meta = field.metadata
        text = _text_of(field, env)
        shown = meta["default"] if text is None else text
        yield SettingDescription(
            meta["variable"],
            shown,
            meta["default"],
            meta["parser"].allowed,
            meta["meaning"],
            text is not None,
        )


def _text_of(field: dataclasses.Field[Any], env: Mapping[str, str]) -> str | None:
    text = env.get(field.metadata["variable"])
    if text is None:
        return None
    text = text.strip()
    return text if text or field.metadata["parser"] is SELECTOR else None
