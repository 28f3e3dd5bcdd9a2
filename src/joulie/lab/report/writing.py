"""The report's file appears whole or not at all."""

from __future__ import annotations

from pathlib import Path

from joulie.lab.report.material import Material
from joulie.lab.report.page import page
from joulie.lab.whole_files import whole_file


def write_report(material: Material, target: Path) -> None:
    """One HTML file. InputError where it cannot be written."""
    content = page(material).encode()
    with whole_file(target) as file:
        file.write(content)
