"""Rules about the repository itself that no linter knows."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.metadata import EntryPoint, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "joulie"
MAX_FILE_LINES = 400
MAX_FOLDER_FILES = 16
LISTS = (
    "docs/adr",
    "docs/runbooks",
)  # one page a decision or an alert, each with an address that is linked from elsewhere

# What decides: no I/O, no clock, no environment, no chance, no log. All of it uses `errors` and `settings`.
PURE = ("errors", "settings", "model", "catalogue", "physics", "control", "plant")
IMPURE_MODULES = {
    *(
        "os",
        "io",
        "pathlib",
        "shutil",
        "tempfile",
        "subprocess",
        "multiprocessing",
        "threading",
        "signal",
        "glob",
    ),
    *("time", "random", "secrets", "logging", "importlib", "pkgutil", "warnings"),
    *("asyncio", "socket", "ssl", "http", "urllib", "requests", "aiohttp", "httpx"),
    *("yaml", "click", "rich", "matplotlib", "plotly", "fmpy"),
}
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "breakpoint", "__import__"}
IMPURE_METHODS = {"now", "utcnow", "today", "default_rng", "RandomState", "getenv", "read_text", "write_text"}
# Neither numpy nor msgspec loads any of these, so nothing that the core needs is an excuse.
NEVER_LOADED_BY_THE_CORE = (
    *(
        "yaml",
        "click",
        "rich",
        "asyncio",
        "socket",
        "ssl",
        "http",
        "urllib.request",
        "aiohttp",
        "httpx",
        "requests",
    ),
    *("plotly", "matplotlib", "fmpy", "logging", "subprocess", "importlib.metadata"),
)


@cache
def repository_files() -> tuple[Path, ...]:
    """Everything that is, or would be with `git add`, part of the repository."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    return tuple(path for name in listing.stdout.split("\0") if name and (path := ROOT / name).is_file())


def pure_files() -> Iterator[Path]:
    for name in PURE:
        module = SOURCE / f"{name}.py"
        yield from [module] if module.is_file() else sorted((SOURCE / name).rglob("*.py"))


def pyproject() -> dict[str, dict[str, object]]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_file_contains_a_path_of_one_machine() -> None:
    machine_path = re.compile(r"(?<![\w.\-/])/" + r"(?:work|root|home|Users)/")
    found = [
        f"{shown(path)}:{number}: {line.strip()[:100]}"
        for path in repository_files()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1)
        if machine_path.search(line)
    ]
    assert not found, "\n".join(found)


def test_packaging_names_no_index_and_no_host() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert "://" not in lock
    assert not re.findall(r"--(?:extra-)?index-url|--find-links|--trusted-host", lock)
    for name in ("pyproject.toml", "Makefile"):
        assert not re.findall(
            r"(?<!no-emit-)index-url|find-links|trusted-host|pythonhosted|pypi\.", (ROOT / name).read_text()
        ), name


def test_every_direct_dependency_is_locked_with_a_hash() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    locked = {canonicalize_name(name) for name in re.findall(r"(?m)^([\w.\-]+)==[^\n]*\\\n +--hash=", lock)}
    project = pyproject()["project"]
    assert isinstance(project["dependencies"], list)
    assert isinstance(project["optional-dependencies"], dict)
    declared = [
        *project["dependencies"],
        *(r for extra in project["optional-dependencies"].values() for r in extra),
    ]
    names = {canonicalize_name(Requirement(text).name) for text in declared} - {"joulie"}
    assert names - locked == set(), "run: make lock"


def test_no_source_file_is_longer_than_a_reader_can_hold() -> None:
    sources = [p for p in repository_files() if p.suffix == ".py"]
    lines = {shown(p): len(p.read_text().splitlines()) for p in sources}
    assert {name: count for name, count in lines.items() if count > MAX_FILE_LINES} == {}


def test_no_folder_has_more_files_than_a_reader_can_survey() -> None:
    folders = Counter(shown(path.parent) for path in repository_files())
    full = {name: count for name, count in folders.items() if count > MAX_FOLDER_FILES and name not in LISTS}
    assert full == {}


def test_every_package_says_what_it_is_for() -> None:
    silent = []
    for folder in sorted({path.parent for path in SOURCE.rglob("*.py")}):
        opening = folder / "__init__.py"
        if not opening.is_file() or not ast.get_docstring(ast.parse(opening.read_text())):
            silent.append(shown(folder))
    assert not silent


def test_what_decides_neither_reads_nor_writes_the_world() -> None:
    found = [
        f"{shown(path)}:{line}: {what}"
        for path in pure_files()
        for line, what in impurities(ast.parse(path.read_text()))
    ]
    assert not found, "\n".join(found)


def impurities(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                imported = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), level=0):
                imported = [module]
            case ast.Call(func=ast.Name(id=called)) if called in IMPURE_CALLS:
                yield node.lineno, f"calls {called}()"
                continue
            case ast.Call(func=ast.Attribute(attr=called)) if called in IMPURE_METHODS:
                yield node.lineno, f"calls .{called}()"
                continue
            case _:
                continue
        for name in imported:
            if name.split(".")[0] in IMPURE_MODULES:
                yield node.lineno, f"imports {name}"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import os.path", "imports os.path"),
        ("from time import monotonic", "imports time"),
        ("def f():\n    return datetime.now(UTC)", "calls .now()"),
        ("with open(name) as f: pass", "calls open()"),
        ("rng = np.random.default_rng()", "calls .default_rng()"),
        ("from joulie.model import names\nx = now + timedelta(seconds=1)", None),
    ],
)
def test_the_purity_check_sees_what_it_should(code: str, found: str | None) -> None:
    assert [what for _, what in impurities(ast.parse(code))] == ([found] if found else [])


def test_the_simulated_truth_knows_nothing_of_the_twins_beliefs() -> None:
    believing = re.compile(r"(?m)^\s*(?:from|import)\s+joulie\.(?:physics|control)\b")
    assert [shown(p) for p in sorted((SOURCE / "plant").rglob("*.py")) if believing.search(p.read_text())] == []


@pytest.mark.parametrize("package", ["model", "catalogue", "physics", "control"])
def test_importing_the_core_loads_no_network_web_yaml_or_plotting_library(package: str) -> None:
    script = (
        "import sys; before = set(sys.modules)\n"
        f"import joulie.{package}\n"
        f"print(*sorted(set({NEVER_LOADED_BY_THE_CORE!r}) & (set(sys.modules) - before)))"
    )
    outcome = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.split() == []


@pytest.mark.parametrize(
    "entry",
    [e for e in distribution("joulie").entry_points if e.group.startswith("joulie.") or e.group == "console_scripts"],
    ids=lambda e: f"{e.group}:{e.name}",
)
def test_every_declared_command_and_plugin_can_be_loaded(entry: EntryPoint) -> None:
    assert callable(entry.load())


def test_documents_mention_only_make_targets_that_exist() -> None:
    targets = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    mentioned = {
        (shown(path), target)
        for path in documents
        for target in re.findall(r"(?m)(?:^|`|\$ )make ([a-z-]+)", path.read_text())
    }
    assert {(path, target) for path, target in mentioned if target not in targets} == set()


def test_every_decision_record_is_listed() -> None:
    folder = ROOT / "docs" / "adr"
    listing = (folder / "README.md").read_text()
    assert [p.name for p in sorted(folder.glob("[0-9]*.md")) if f"({p.name})" not in listing] == []


def test_ci_runs_make_test() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert "make test" in script.read_text()


def test_bounds_are_called_max_and_min() -> None:
    other = re.compile(r"\b_?(?:MOST|LEAST|LONGEST|SHORTEST|FEWEST)_[A-Z]\w*")
    own = Path(__file__)
    found = {
        name: path.relative_to(ROOT).as_posix()
        for path in repository_files()
        if path.suffix == ".py" and path != own
        for name in other.findall(path.read_text(encoding="utf-8"))
    }
    assert not found, "say MAX_ or MIN_"
