"""The file system of the image: Python, Joulie's environment and the shared libraries that they load, and nothing else.

`python deploy/image/rootfs.py /opt/joulie /rootfs` runs in the build stage and needs nothing but Python and ldd there.
No shell, no package manager and no pip get into the image. What is taken from Debian is recorded below
/var/lib/dpkg/status.d, where scanners for vulnerable packages look for it.
"""

from __future__ import annotations

import compileall
import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable
from pathlib import Path

USER = 65532
# Of the standard library: what belongs to developers, to windows on a screen, or to other systems.
UNUSED = {
    *(
        "dist-packages",
        "ensurepip",
        "idlelib",
        "lib2to3",
        "pydoc_data",
        "site-packages",
        "test",
        "tkinter",
        "turtledemo",
    ),
}
LIBRARIES_AT_RUN_TIME = ("libgcc_s.so.1",)  # no program says that it needs this one; ending a thread does
FILES = ("etc/os-release", "etc/ssl/certs/ca-certificates.crt")
ACCOUNTS = {
    "etc/passwd": f"root:x:0:0:root:/:/sbin/nologin\njoulie:x:{USER}:{USER}:joulie:/tmp:/sbin/nologin\n",
    "etc/group": f"root:x:0:\njoulie:x:{USER}:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}


def assemble(environment: Path, root: Path) -> None:
    """Put everything below `root`."""
    interpreter = Path(sys.executable).resolve()
    library = Path(sysconfig.get_path("stdlib"))
    for link in ("bin", "lib", "lib64", "sbin"):  # as Debian has it: programs name /lib64/ld-linux… as their loader
        (root / "usr" / link).mkdir(parents=True, exist_ok=True)
        (root / link).symlink_to(f"usr/{link}")
    _copy(interpreter, root)
    for folder, unused in ((library, UNUSED), (environment, set[str]())):
        shutil.copytree(folder, root / folder.relative_to("/"), symlinks=True, ignore=_without(folder, unused))
    _link_interpreter(environment, interpreter, root)
    modules = [path for folder in (library, environment) for path in (root / folder.relative_to("/")).rglob("*.so*")]
    for path in _libraries([interpreter, *modules], root):
        _copy(path, root)
    for name in FILES:
        _copy(Path("/", name), root)
    for name, text in ACCOUNTS.items():
        (root / name).write_text(text)
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    subprocess.run(["/sbin/ldconfig", "-r", str(root)], check=True)
    (root / "var/cache/ldconfig/aux-cache").unlink(missing_ok=True)
    _compile((root / library.relative_to("/"), root / environment.relative_to("/")), root)
    _record_packages(root)


def _without(top: Path, unused: set[str]) -> Callable[[str, list[str]], set[str]]:
    def ignored(folder: str, names: list[str]) -> set[str]:
        found = {"__pycache__", "tests"} | {name for name in names if name.endswith(".a")}
        if Path(folder) == top:
            found |= unused | {name for name in names if name.startswith("config-")}
        return found & set(names)

    return ignored


def _copy(path: Path, root: Path) -> None:
    """One file with what it holds, under the name by which it is asked for."""
    target = root / str(path.parent.resolve()).removeprefix("/") / path.name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, target)


def _link_interpreter(environment: Path, interpreter: Path, root: Path) -> None:
    for link in (root / environment.relative_to("/") / "bin").glob("python*"):
        link.unlink()
        link.symlink_to(interpreter)


def _libraries(programs: Iterable[Path], root: Path) -> list[Path]:
    """The shared libraries outside of what was copied that these load, and the loader itself."""
    found: set[Path] = set()
    for program in programs:
        said = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
        if missing := re.findall(r"(\S+) => not found", said):
            raise SystemExit(f"{program}: {', '.join(missing)} is not in the base image")
        found |= {Path(path) for path in re.findall(r"(?:=>\s*|^\s*)(/\S+)", said, re.MULTILINE)}
    (libc,) = (path for path in found if path.name == "libc.so.6")
    found |= {libc.with_name(name) for name in LIBRARIES_AT_RUN_TIME}
    return sorted(path for path in found if root not in path.parents)


def _compile(folders: Iterable[Path], root: Path) -> None:
    """Read-only at run time, so now; by content instead of time, so that the same input gives the same bytes."""
    for folder in folders:
        compileall.compile_dir(
            folder,
            quiet=2,
            stripdir=str(root),
            prependdir="/",
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            maxlevels=30,
        )


def _record_packages(root: Path) -> None:
    """The records of the Debian packages that something was taken from."""
    database = Path("/var/lib/dpkg")
    if not (database / "status").is_file():
        return
    taken = {f"/{path.relative_to(root)}" for path in root.rglob("*") if not path.is_dir()}
    owners = {"ca-certificates"} | {  # whose bundle is made when it is installed, and so in no list
        listing.stem.split(":")[0]
        for listing in (database / "info").glob("*.list")
        if any(_real(line) in taken for line in listing.read_text().splitlines())
    }
    records = root / "var/lib/dpkg/status.d"
    records.mkdir(parents=True)
    for paragraph in (database / "status").read_text().split("\n\n"):
        name = paragraph.strip().split("\n")[0].removeprefix("Package: ")
        if name in owners:
            (records / name).write_text(paragraph.strip() + "\n")


def _real(path: str) -> str:
    """Where a file of that name lies: links are followed on the way to it, and it may itself be one."""
    folder, name = os.path.split(path)
    return f"{os.path.realpath(folder)}/{name}"


if __name__ == "__main__":
    assemble(Path(sys.argv[1]), Path(sys.argv[2]))
