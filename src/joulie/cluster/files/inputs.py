"""Files, folders and standard input as bytes, with the names that messages use for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from joulie.errors import InputError

STANDARD_INPUT = "standard input"
MANIFEST_SUFFIXES = (".json", ".yaml", ".yml")
_BOM = b"\xef\xbb\xbf"


def contents(paths: Sequence[str], stdin: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """Name and text of each file; a folder means the manifests in it, `-` standard input."""
    if paths.count("-") > 1:
        raise InputError(f"{STANDARD_INPUT}: given twice")
    if "" in paths:  # an unset variable in a script, which must not mean the current folder
        raise InputError("a file name is empty")
    for path in paths:
        if path == "-":
            yield STANDARD_INPUT, _text(STANDARD_INPUT, _read(STANDARD_INPUT, stdin))
            continue
        for file in _files(path):
            yield str(file), _text(str(file), _read(str(file), file))


def _files(path: str) -> list[Path]:
    place = Path(path)
    try:
        if not place.is_dir():
            return [place]
        files = sorted(file for file in place.iterdir() if file.suffix in MANIFEST_SUFFIXES and _is_manifest(file))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {_reason(error)}") from None
    if not files:
        raise InputError(f"{path}: the folder contains no {', '.join(MANIFEST_SUFFIXES)} file")
    return files


def _is_manifest(file: Path) -> bool:
    """Files, and dangling links: they must cause an error, not a plan that silently lacks their objects."""
    return file.is_file() or (file.is_symlink() and not file.exists())


def _read(name: str, source: Path | BinaryIO) -> bytes:
    try:
        return source.read_bytes() if isinstance(source, Path) else source.read()
    except (OSError, ValueError) as error:
        raise InputError(f"{name}: cannot be read: {_reason(error)}") from None


def _reason(error: OSError | ValueError) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _text(name: str, data: bytes) -> bytes:
    """The bytes, verified to be UTF-8 text, without a byte order mark."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{name}: is UTF-16, not UTF-8: save it as UTF-8")
    data = data.removeprefix(_BOM)
    if not data or data.isspace():
        raise InputError(f"{name}: is empty")
    if (position := data.find(b"\0")) >= 0:
        raise InputError(f"{name}: is binary, not text (zero byte at offset {position})")
    if not data.isascii():  # far cheaper than decoding, and true for most
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{name}: is not UTF-8 text (offset {error.start})") from None
    return data
