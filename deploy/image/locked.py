"""The part of requirements.lock that some packages need, with its hashes: one lock serves development and the image.

`python deploy/image/locked.py 'joulie[nvidia,podresources]'` prints what Joulie with that extra needs.
Needs nothing but Python; the lock says of each package which others brought it in.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

OURSELVES = "joulie"


def subset(lock: str, roots: Iterable[str]) -> str:
    """The blocks of the lock that these packages stand in, and all that came in by them."""
    blocks = [
        (normal(block), block) for block in re.split(r"(?m)^(?=[A-Za-z0-9])", lock)[1:]
    ]  # two of one name: markers
    chosen = set(roots)
    if missing := chosen - {name for name, _ in blocks}:
        raise SystemExit(f"not in the lock: {', '.join(sorted(missing))}; run: make lock")
    brought_by = [(name, {normal(line) for line in via(block)}) for name, block in blocks]
    while more := {name for name, parents in brought_by if name not in chosen and parents & chosen}:
        chosen |= more
    return "".join(block for name, block in blocks if name in chosen)


def roots_of(asked: str, project: dict[str, Any]) -> set[str]:
    """The packages that a name stands for: itself, or what our own project needs."""
    name, _, extras = asked.rstrip("]").partition("[")
    if name != OURSELVES:
        return {normal(name)}
    needed = list(project["dependencies"])
    for extra in filter(None, extras.split(",")):
        needed += project["optional-dependencies"][extra]
    return {normal(requirement) for requirement in needed}


def normal(text: str) -> str:
    """The name at the beginning, as indexes spell it."""
    found = re.match(r"[A-Za-z0-9._-]+", text)
    return re.sub(r"[-_.]+", "-", found[0]).lower() if found else ""


def via(block: str) -> list[str]:
    """Who brought it in: `# via a`, or one a line below `# via`."""
    _, _, listed = block.partition("# via")
    return [line.strip(" #") for line in listed.splitlines() if line.strip(" #")]


if __name__ == "__main__":
    here = Path.cwd()
    project = tomllib.loads((here / "pyproject.toml").read_text())["project"]
    wanted = set().union(*(roots_of(asked, project) for asked in sys.argv[1:]))
    sys.stdout.write(subset((here / "requirements.lock").read_text(), wanted))
