"""How the single-file kubectl plug-in starts. Becomes its `__main__.py`, so it needs nothing but Python.

Compiled modules cannot be loaded out of a zip file: what belongs to this Python is unpacked once into the user's cache.
"""

import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path


def main() -> None:
    """Unpack if need be, then be `joulie`."""
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    with zipfile.ZipFile(sys.path[0]) as packed:
        digest, platform, *tags = packed.read("contents").decode().split()
        here = f"{sys.platform}-{os.uname().machine}"
        if tag not in tags or here != platform:
            known = ", ".join(f"3.{known[3:]}" for known in tags)
            sys.exit(f"kubectl-joulie: made for Python {known} on {platform}, and this is {tag[2]}.{tag[3:]} on {here}")
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "joulie"
        folder = cache / f"kubectl-{digest}-{tag}"
        if not folder.is_dir():
            _unpack(packed, tag, folder)
    sys.path[0] = str(folder)
    from joulie.cli.main import main as joulie

    joulie()


def _unpack(packed: zipfile.ZipFile, tag: str, folder: Path) -> None:
    """At once and whole, also where two start at the same time."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".kubectl-"))
    try:
        for member in packed.infolist():
            kind, _, name = member.filename.partition("/")
            if kind in ("common", tag) and name:
                member.filename = name
                packed.extract(member, unfinished)
        try:
            unfinished.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


if __name__ == "__main__":
    main()
