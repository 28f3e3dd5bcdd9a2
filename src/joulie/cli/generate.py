"""Writes every file that is made from the code: `python -m joulie.cli.generate`, or `make generate`.

With `--check` nothing is written; the files that have drifted are named, and the exit code is 1.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from joulie.cli.chart_schema import values_schema
from joulie.cli.chart_settings import settings_json
from joulie.cli.command_reference import cli_reference
from joulie.cli.metrics_reference import metrics_page
from joulie.cli.reference import api_page, catalogue_page, settings_page
from joulie.cluster.crds import crd_yaml, crds

REPOSITORY = Path(__file__).resolve().parents[3]
CHART = "deploy/chart/joulie"
CRD_FOLDER = f"{CHART}/crds"  # the chart installs them, and nothing else needs a copy
HINT = "run: make generate"

# Path in the repository → what makes its text. One line here is all that another page needs.
PAGES: dict[str, Callable[[], str]] = {
    f"{CHART}/values.schema.json": values_schema,
    f"{CHART}/files/settings.json": settings_json,
    "docs/reference/settings.md": settings_page,
    "docs/reference/api.md": api_page,
    "docs/reference/catalogue.md": catalogue_page,
    "docs/reference/cli.md": cli_reference,
    "docs/reference/metrics.md": metrics_page,
}


def generated_files() -> dict[str, str]:
    """Path in the repository → text, for everything that is generated."""
    definitions = {f"{CRD_FOLDER}/{crd['metadata']['name']}.yaml": crd_yaml(crd) for crd in crds()}
    return definitions | {path: make() for path, make in PAGES.items()}


def drifted(repository: Path) -> list[str]:
    """Files that are missing, hold something else, or define a kind that is no more."""
    files = generated_files()
    return sorted([
        *(path for path, text in files.items() if _text(repository / path) != text),
        *(path for path in _definitions(repository) if path not in files),
    ])  # fmt: skip


def write(repository: Path) -> list[str]:
    """Brings everything up to date; returns what had to change."""
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


def _definitions(repository: Path) -> list[str]:
    return [path.relative_to(repository).as_posix() for path in (repository / CRD_FOLDER).glob("*.joulie.io.yaml")]


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; name the files that drifted and exit with 1.")
@click.option(
    "--root",
    type=click.Path(file_okay=False, path_type=Path),
    default=REPOSITORY,
    help="The repository; default is the one this file is in.",
)
def command(check: bool, root: Path) -> None:
    """Write CustomResourceDefinitions and reference pages anew from the code."""
    if not check:
        for path in write(root):
            click.echo(path)
        return
    if changed := drifted(root):
        for path in changed:
            click.echo(f"{path}: drifted from the code; {HINT}", err=True)
        raise click.exceptions.Exit(1)


if __name__ == "__main__":
    command()
