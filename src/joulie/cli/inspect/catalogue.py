"""`joulie catalogue`: the CPUs and GPUs that Joulie knows, with the source of each number."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from joulie.cli.options import prints_result
from joulie.settings import HardwareSettings, load

if TYPE_CHECKING:
    from joulie.catalogue.lookup import Catalogue
    from joulie.cli.output import Output

_BARS = "▁▂▃▄▅▆▇█"


@click.command("catalogue")
@prints_result
def command(out: Output) -> None:
    """List the known CPUs and GPUs: limits, power curves, evidence and source.

    What a node itself reports takes precedence over the catalogue. Your own models come from the TOML file in
    HARDWARE_CATALOG_PATH and take precedence over the built-in ones.

    \b
    Examples:
      joulie catalogue
      HARDWARE_CATALOG_PATH=our-models.toml joulie catalogue
      joulie catalogue -o json | jq '.gpus[] | {name, minW, maxW}'
    """
    from joulie.sources.catalogue_file import read_catalogue

    catalogue = read_catalogue(load(HardwareSettings, os.environ).hardware_catalog_path)
    if out.for_people:
        _print(catalogue, out)
    else:
        out.document(_plain(catalogue))


def _plain(catalogue: Catalogue) -> dict[str, list[dict[str, Any]]]:
    """Everything, in camel case as all other JSON output: `tdp_w` becomes `tdpW`; unknown values are null."""
    import msgspec

    return {
        part: [{_camel(key): value for key, value in msgspec.to_builtins(model).items()} for model in models]
        for part, models in (("cpus", catalogue.cpus), ("gpus", catalogue.gpus))
    }


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _print(catalogue: Catalogue, out: Output) -> None:
    from joulie.cli.tables import bare_table

    cpus = bare_table("CPUs (each socket; curve: a two-socket server, idle to full load)")
    for heading in ("model", "cores", "GHz", "TDP", "cTDP", "curve", "evidence", "source"):
        cpus.add_column(heading, no_wrap=heading != "source")
    for cpu in catalogue.cpus:
        limits = f"{cpu.ctdp_min_w:g}–{cpu.ctdp_max_w:g} W" if cpu.ctdp_min_w and cpu.ctdp_max_w else "–"
        curve = "–" if cpu.node_curve_w is None else _curve(cpu.node_curve_w)
        clock = f"{cpu.base_ghz:g}–{cpu.boost_ghz:g}"
        cpus.add_row(cpu.name, f"{cpu.cores:g}", clock, f"{cpu.tdp_w:g} W", limits, curve, cpu.evidence, cpu.source)

    gpus = bare_table("GPUs (each board)")
    for heading in ("model", "vendor", "power limit", "aliases", "evidence", "source"):
        gpus.add_column(heading, no_wrap=heading not in ("source", "aliases"))
    for gpu in catalogue.gpus:
        limits = f"{gpu.min_w:g}–{gpu.max_w:g} W" if gpu.min_w else f"up to {gpu.max_w:g} W"
        gpus.add_row(gpu.name, gpu.vendor, limits, ", ".join(gpu.aliases) or "–", gpu.evidence, gpu.source)

    console = out.console()
    console.print(cpus)
    console.print()
    console.print(gpus)


def _curve(watts: tuple[float, ...]) -> str:
    """`128 ▁▂▃▄▅▆▇█ 817 W`"""
    low, high = watts[0], watts[-1]
    bars = (_BARS[round((w - low) / (high - low or 1) * (len(_BARS) - 1))] for w in watts)
    return f"{low:g} {''.join(bars)} {high:g} W"
