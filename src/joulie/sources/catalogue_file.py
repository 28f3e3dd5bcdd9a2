"""The hardware catalogue extended by a file."""

from __future__ import annotations

import tomllib
from pathlib import Path

from joulie.catalogue.lookup import Catalogue, extend
from joulie.errors import InputError

CATALOGUE_VARIABLE = "HARDWARE_CATALOG_PATH"


def read_catalogue(path: str) -> Catalogue:
    """The built-in catalogue, extended by the file that `HARDWARE_CATALOG_PATH` names."""
    if not path:
        return Catalogue()
    origin = f"{CATALOGUE_VARIABLE}: {path}"
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # invalid TOML and UTF-8 are ValueErrors
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise InputError(f"{origin}: cannot be read: {reason}") from None
    return extend(Catalogue(), content, origin)
