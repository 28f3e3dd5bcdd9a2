"""A real Prometheus for tests: the one that is installed, else Debian's package, unpacked into the user's cache.

Nothing is installed and no service is started: the package is downloaded and its binary copied out of it. Where that
cannot be done the tests are skipped with the reason; under `CI=true` they fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import pytest

from testbed.processes import free_port
from tests.support.obtaining import UnavailableError, obtained, run_tool, say_skipped

NEEDED = "needs a real Prometheus"
BINARIES = ("prometheus", "promtool")
READY_WITHIN_S = 30.0
DOWNLOAD_WITHIN_S = 300.0


def prometheus_binary() -> Path:
    return _binary("prometheus")


def promtool_binary() -> Path:
    """What checks rules and tries them; of the same package."""
    return _binary("promtool")


def _binary(name: str) -> Path:
    """From the search path, from the cache, or from a package that is downloaded once."""
    installed = shutil.which(name)
    if installed:
        return Path(installed)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "joulie" / "prometheus"
    cached = sorted(cache.glob(f"*/{name}"))
    return cached[-1] if cached else _download(cache, name)


def _download(cache: Path, wanted: str) -> Path:
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise UnavailableError(f"no {wanted} on the search path, and no apt-get and dpkg-deb to fetch one")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".download-") as name:
        folder = Path(name)
        package = _package(folder)
        _run(["dpkg-deb", "-x", str(package), "unpacked"], folder)
        target = cache / package.name.split("_")[1]
        target.mkdir(exist_ok=True)
        for binary in BINARIES:
            unpacked = folder / "unpacked" / "usr" / "bin" / binary
            if not unpacked.is_file():
                raise UnavailableError(f"{package.name} holds no usr/bin/{binary}")
            unpacked.replace(target / binary)  # atomic: two processes may get here at once
        return target / wanted


def _package(folder: Path) -> Path:
    """The .deb, by the machine's package lists, or by lists of our own where it has none."""
    lists, archives = folder / "lists", folder / "cache"
    for place in (lists, archives):
        (place / "partial").mkdir(parents=True)
    own = ["-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={archives}", "-o", "Debug::NoLocking=1"]
    try:
        _run(["apt-get", "-q", "download", "prometheus"], folder)
    except UnavailableError:
        _run(["apt-get", "-q", *own, "update"], folder)
        _run(["apt-get", "-q", *own, "download", "prometheus"], folder)
    return next(folder.glob("prometheus_*.deb"))


def _run(command: Sequence[str], folder: Path) -> str:
    return run_tool(command, folder, DOWNLOAD_WITHIN_S)


class PrometheusServer:
    """A server on a free loopback port that scrapes loopback targets; ended when the `with` block ends."""

    def __init__(self, targets: Sequence[str], scrape_interval: str = "250ms", rules: Sequence[Path] = ()) -> None:
        self._binary = prometheus_binary()
        every = f"scrape_interval: {scrape_interval}, scrape_timeout: {scrape_interval}"
        self._config = (
            f"global: {{{every}, evaluation_interval: {scrape_interval}}}\n"
            f"rule_files: {[str(file) for file in rules]}\n"
            f"scrape_configs: [{{job_name: test, static_configs: [{{targets: {list(targets)}}}]}}]\n"
        )
        self._process: subprocess.Popen[bytes] | None = None
        self.address = ""

    def __enter__(self) -> PrometheusServer:
        self._folder = tempfile.TemporaryDirectory(prefix="joulie-prometheus-")
        folder = Path(self._folder.name)
        (folder / "prometheus.yml").write_text(self._config)
        port = free_port()
        self.address = f"http://127.0.0.1:{port}"
        self._log = (folder / "log").open("wb")
        self._process = subprocess.Popen(
            [
                str(self._binary),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=warn",
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
        try:
            self._wait_until_ready(folder / "log")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the process that was started here, and removes what it stored."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._log.close()
        self._folder.cleanup()

    def _wait_until_ready(self, log: Path) -> None:
        deadline_s = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline_s:
            if self._process is not None and self._process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"{self.address}/-/ready", timeout=1) as answer:
                    if answer.status == 200:
                        return
            except OSError:  # not listening yet, or 503 while it starts
                pass
            time.sleep(0.05)
        raise AssertionError(f"Prometheus did not start: {log.read_text(errors='replace')[-500:]}")


@pytest.fixture(scope="session")
def start_prometheus(pytestconfig: pytest.Config) -> type[PrometheusServer]:
    """Makes servers, which the test enters; skips where there is no Prometheus, and in CI fails."""
    obtained(prometheus_binary, pytestconfig, NEEDED)
    return PrometheusServer


@pytest.fixture(scope="session")
def promtool(pytestconfig: pytest.Config) -> Path:
    """The program; skips where there is none, and in CI fails."""
    return obtained(promtool_binary, pytestconfig, NEEDED)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    say_skipped(terminalreporter, NEEDED)
