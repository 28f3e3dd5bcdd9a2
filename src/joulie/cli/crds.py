"""`joulie crds`: the CustomResourceDefinitions, ready for `kubectl apply`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from joulie.errors import InputError


@click.command("crds")
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="YAML documents, or one JSON List.",
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write one file for each definition into this folder instead of printing them.",
)
def command(form: Literal["yaml", "json"], folder: Path | None) -> None:
    """Print the definitions of Joulie's API objects.

    NodeHardware, NodeTwin, NodePowerProfile and TelemetryProfile, with their ranges, descriptions and printer columns.
    Applying them is all that a cluster needs before Joulie's objects can live in it; applying them again updates them.

    \b
    Examples:
      joulie crds | kubectl apply -f -            install or update them
      joulie crds | kubectl diff -f -             what would change
      joulie crds --dir crds                      one file each, to keep in git
      joulie crds -o json | jq -r '.items[].metadata.name'
    """
    from joulie.cluster.crds import crds, crds_yaml

    if folder is not None:
        _write(folder, crds(), form)
    elif form == "yaml":
        click.echo(crds_yaml(), nl=False)
    else:
        from joulie.cli.output import Output

        Output(form).document({"apiVersion": "v1", "kind": "List", "items": crds()})


def _write(folder: Path, definitions: list[dict[str, Any]], form: str) -> None:
    import json

    from joulie.cluster.crds import crd_yaml

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for crd in definitions:
            text = crd_yaml(crd) if form == "yaml" else json.dumps(crd, indent=2, ensure_ascii=False) + "\n"
            file = folder / f"{crd['metadata']['name']}.{form}"
            file.write_text(text, encoding="utf-8")
            click.echo(f"wrote {file}", err=True)
    except OSError as error:
        raise InputError(f"{error.filename or folder}: cannot be written: {error.strerror}") from None
