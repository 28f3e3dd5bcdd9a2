"""Text that is safe to print on one line, whatever a file or an error message contains."""

from __future__ import annotations


def one_line(text: str) -> str:
    """Without line breaks or anything else that moves a terminal's cursor."""
    return "".join(char if char.isprintable() else "�" for char in " ".join(text.split()))
