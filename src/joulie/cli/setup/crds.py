"""`joulie crds`: the CustomResourceDefinitions, ready for `kubectl apply`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from joulie.cli.lazy import LazyCommand, LazyGroup
from joulie.errors import InputError

TABLE = {"apply": LazyCommand("joulie.cli.setup.crds_apply", "Instead of printing", "Install or update them.")}


@click.group("crds", cls=LazyGroup, table=TABLE, invoke_without_command=True, subcommand_metavar="[apply …]")
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
    help="Write one file per definition to this folder instead of printing them.",
)
@click.pass_context
def command(context: click.Context, form: Literal["yaml", "json"], folder: Path | None) -> None:
    """Print the custom resource definitions of Joulie's API objects.

    NodeHardware, NodeTwin, NodePowerProfile, PowerBudget and TelemetryProfile, with their ranges, descriptions and
    printer columns. Apply them once before any of Joulie's objects can be created, and again to update them.

    \b
    Examples:
      joulie crds apply                           install or update them
      joulie crds | kubectl apply -f -            the same by kubectl
      joulie crds | kubectl diff -f -             what would change
      joulie crds --dir crds                      one file each, to keep in git
      joulie crds -o json | jq -r '.items[].metadata.name'
    """
    if context.invoked_subcommand is not None:
        return
    from joulie.cluster.crds.definitions import crds, crds_yaml

    if folder is not None:
        _write(folder, crds(), form)
    elif form == "yaml":
        click.echo(crds_yaml(), nl=False)
    else:
        from joulie.cli.output import Output

        Output(form).document({"apiVersion": "v1", "kind": "List", "items": crds()})


def _write(folder: Path, definitions: list[dict[str, Any]], form: str) -> None:
    import json

    from joulie.cluster.crds.definitions import crd_yaml

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for crd in definitions:
            text = crd_yaml(crd) if form == "yaml" else json.dumps(crd, indent=2, ensure_ascii=False) + "\n"
            file = folder / f"{crd['metadata']['name']}.{form}"
            file.write_text(text, encoding="utf-8")
            click.echo(f"wrote {file}", err=True)
    except OSError as error:
        raise InputError(f"{error.filename or folder}: cannot be written: {error.strerror}") from None
