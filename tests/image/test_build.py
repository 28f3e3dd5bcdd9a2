"""The image that the Dockerfile makes: what is in it, and that it runs on its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.image.container import Container
from tools.release.image import ROOT

EXAMPLE = ROOT / "src/joulie/demo/example_cluster.yaml"
MAX_UNPACKED_BYTES = 200_000_000
DEVELOPMENT = {"pytest", "mypy", "ruff", "mkdocs", "hypothesis", "import-linter", "fmpy", "amdsmi", "cryptography"}


def test_it_is_small_enough_to_be_pulled_by_every_node(image: Container) -> None:
    assert image.unpacked_bytes < MAX_UNPACKED_BYTES


def test_every_command_of_the_chart_runs_read_only_and_without_rights(image: Container, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_bytes(EXAMPLE.read_bytes())
    tmp_path.chmod(0o755)
    for arguments in (
        ["--help"],
        ["--version"],
        *([command, "--help"] for command in ("operator", "agent", "extender", "simulator", "cleanup", "doctor")),
        ["operator", "--once", "--dry-run", "-f", "/tmp/shared/cluster.yaml"],
        ["plan", "-f", "/tmp/shared/cluster.yaml"],
    ):
        outcome = image.run(*arguments, shared=tmp_path)
        assert outcome.returncode == 0, (arguments, outcome.stderr)
        assert outcome.stdout


def test_nothing_but_tmp_can_be_written_and_the_user_is_unprivileged(image: Container) -> None:
    who = "import os, pathlib; print(os.getuid(), os.getgid(), os.getgroups())"
    outcome = run_python(image, f"{who}; pathlib.Path('/tmp/x').touch(); pathlib.Path('/opt/x').touch()")
    assert outcome.stdout == "65532 65532 []\n"
    assert "Read-only file system: '/opt/x'" in outcome.stderr


def test_every_module_is_compiled_ahead(image: Container) -> None:
    load = "import os, sys, json, aiohttp, joulie.cli.serve.operator"
    cached = "[f for m in list(sys.modules.values()) if (f := getattr(m, '__cached__', None))]"
    outcome = run_python(
        image, f"{load}; files = {cached}; print(len(files), *[f for f in files if not os.path.exists(f)])"
    )
    count, *missing = outcome.stdout.split()
    assert int(count) > 100
    assert missing == []


def test_it_trusts_the_authorities_that_its_base_trusts(image: Container) -> None:
    look = "import ssl;print(len(ssl.create_default_context().get_ca_certs()))"
    assert int(run_python(image, look).stdout) > 100


def test_no_shell_no_package_manager_and_no_tool_of_its_makers_is_in_it(image: Container) -> None:
    programs = {path.name for path in image.root.rglob("*") if path.is_file() and os.access(path, os.X_OK)}
    assert "joulie" in programs
    assert programs.isdisjoint(
        {"sh", "bash", "dash", "busybox", "apt-get", "dpkg", "pip", "pip3", "ldconfig", "openssl"}
    )
    assert installed(image).isdisjoint(DEVELOPMENT | {"pip", "hatchling", "setuptools"})
    assert "joulie" in installed(image)


def test_all_files_of_the_sources_are_in_it(image: Container) -> None:
    (package,) = image.root.glob("opt/joulie/lib/python*/site-packages/joulie")
    there = {path.relative_to(package) for path in package.rglob("*") if path.is_file()}
    source = ROOT / "src/joulie"
    expected = {
        path.relative_to(source) for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }
    assert expected <= there


def test_no_file_in_it_can_be_changed_by_its_user_or_gives_rights(image: Container) -> None:
    loose = [
        path
        for path in image.root.rglob("*")
        if not path.is_symlink() and path.stat().st_mode & 0o6002 and path != image.root / "tmp"
    ]
    assert loose == []
    assert {path.stat().st_uid for path in image.root.rglob("*") if not path.is_symlink()} == {0}


def test_scanners_find_the_debian_packages_that_its_libraries_come_from(image: Container) -> None:
    records = image.root / "var/lib/dpkg/status.d"
    assert {"libc6", "zlib1g", "libssl3", "libstdc++6", "ca-certificates"} <= {path.name for path in records.iterdir()}
    assert "Version: " in (records / "libc6").read_text()


def test_it_says_what_it_is(image: Container) -> None:
    labels = image.config["Labels"]
    named = {name.removeprefix("org.opencontainers.image.") for name in labels}
    assert {"title", "description", "licenses", "version", "revision", "base.name"} <= named
    assert labels["org.opencontainers.image.title"] == "Joulie"
    assert image.config["User"] == "65532:65532"
    assert image.config["Entrypoint"] == ["joulie"]
    assert image.created.startswith("1970-01-01T00:00:00")


def run_python(image: Container, program: str) -> subprocess.CompletedProcess[str]:
    command = image.command("python", "-c", program)
    return subprocess.run(command, capture_output=True, text=True, env=image.environment({}), check=False)


def installed(image: Container) -> set[str]:
    look = "from importlib.metadata import distributions as d;print(*{x.name for x in d()})"
    return {name.lower() for name in run_python(image, look).stdout.split()}
