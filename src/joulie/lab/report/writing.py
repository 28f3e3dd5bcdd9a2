"""The report's file appears whole or not at all."""

from __future__ import annotations

import tempfile
from pathlib import Path

from joulie.errors import InputError
from joulie.lab.report.material import Material
from joulie.lab.report.page import page


def write_report(material: Material, target: Path) -> None:
    """One HTML file. InputError where it cannot be written."""
    content = page(material).encode()
    unfinished = None
    try:
        if target.exists() and not target.is_file():  # a device or a pipe is written to, never replaced
            target.write_bytes(content)
            return
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".unfinished-", delete=False) as file:
            unfinished = Path(file.name)
            file.write(content)
        unfinished.chmod(0o644)
        unfinished.replace(target)
    except OSError as error:
        if unfinished is not None:
            unfinished.unlink(missing_ok=True)
        raise InputError(f"{target}: cannot be written: {error.strerror}") from None
