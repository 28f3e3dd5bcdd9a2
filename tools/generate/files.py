"""Every generated file: the function that makes its text, whether it is up to date, and how to rewrite it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from joulie.cluster.crds.definitions import crd_yaml, crds
from tools.generate.chart_schema import values_schema
from tools.generate.chart_settings import settings_json
from tools.generate.command_reference import cli_reference
from tools.generate.dashboards.build import dashboards
from tools.generate.measures_reference import measures_page
from tools.generate.metrics_reference import metrics_page
from tools.generate.reference import api_page, catalogue_page, settings_page
from tools.generate.score_reference import score_page
from tools.generate.telemetry_reference import telemetry_page

REPOSITORY = Path(__file__).resolve().parents[2]
CHART = "deploy/chart/joulie"
DASHBOARD_FOLDER = f"{CHART}/files/dashboards"
CRD_FOLDER = f"{CHART}/crds"  # installed by the chart; nothing else needs a copy
HINT = "run: make generate"

# Path in the repository → what makes its text. Another page needs one more line here.
PAGES: dict[str, Callable[[], str]] = {
    f"{CHART}/values.schema.json": values_schema,
    f"{CHART}/files/settings.json": settings_json,
    "docs/reference/settings.md": settings_page,
    "docs/reference/api.md": api_page,
    "docs/reference/catalogue.md": catalogue_page,
    "docs/reference/cli.md": cli_reference,
    "docs/reference/metrics.md": metrics_page,
    "docs/reference/measures.md": measures_page,
    "docs/reference/score.md": score_page,
    "docs/reference/telemetry.md": telemetry_page,
}


def generated_files() -> dict[str, str]:
    """Path in the repository → text, for everything that is generated."""
    definitions = {f"{CRD_FOLDER}/{crd['metadata']['name']}.yaml": crd_yaml(crd) for crd in crds()}
    drawn = {f"{DASHBOARD_FOLDER}/{name}": text for name, text in dashboards().items()}
    return definitions | drawn | {path: make() for path, make in PAGES.items()}


def drifted(repository: Path) -> list[str]:
    """Files that are missing, differ, or are no longer generated."""
    files = generated_files()
    return sorted([
        *(path for path, text in files.items() if _text(repository / path) != text),
        *(path for path in _present(repository) if path not in files),
    ])  # fmt: skip


def write(repository: Path) -> list[str]:
    """Brings everything up to date; returns the changed files."""
    files = generated_files()
    changed = drifted(repository)
    for path in changed:
        target = repository / path
        if path not in files:
            target.unlink()
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(files[path], encoding="utf-8")
    return changed


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _present(repository: Path) -> list[str]:
    """Existing files in folders that contain only generated ones."""
    crds_there = (repository / CRD_FOLDER).glob("*.joulie.io.yaml")
    dashboards_there = (repository / DASHBOARD_FOLDER).glob("*.json")
    return [path.relative_to(repository).as_posix() for path in (*crds_there, *dashboards_there)]


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; list outdated files and exit with 1.")
@click.option(
    "--root",
    type=click.Path(file_okay=False, path_type=Path),
    default=REPOSITORY,
    help="The repository; default: the one that contains this file.",
)
def command(check: bool, root: Path) -> None:
    """Rewrite every generated file from the code."""
    if not check:
        for path in write(root):
            click.echo(path)
        return
    if changed := drifted(root):
        for path in changed:
            click.echo(f"{path}: out of date; {HINT}", err=True)
        raise click.exceptions.Exit(1)
