"""Reference pages of the documentation, generated from the code that they describe."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, get_type_hints

from joulie.catalogue.builtin import CPUS, GPUS
from joulie.cluster.crds import definitions as crds
from joulie.settings import COMPONENTS, SettingDescription, describe

NOTE = "<!-- Generated from {source}; after a change run: make generate -->\n"


_SETTINGS_INTRO = """\
Every setting is an environment variable, read once at start. An empty variable counts as not set. An invalid
value stops the program with one line that names the variable, the value and what is allowed. `joulie config` shows
the current values; `joulie config operator -o json` prints them for programs.

Durations are written as in Go: `90s`, `5m`, `1h30m`.
"""
_API_INTRO = f"""\
Group `{crds.GROUP}`, version `{crds.VERSION}`, cluster-scoped, each with a status subresource. `joulie crds` prints the
definitions, `kubectl get joulie` lists all objects, and `kubectl explain nodetwins.status` prints these descriptions.
"""
_CATALOGUE_INTRO = """\
What Joulie knows about a model if the node itself does not report it. *Evidence* says how far a number can be trusted:
`measured` (with a published power curve), `official` (the vendor's specification) or `proxy` (taken from a similar
model). A name from the field matches when it contains all words of a model's name or of one of its aliases:
`NVIDIA-H100-80GB-HBM3` is an H100 SXM. `joulie catalogue` prints the same.
"""


def settings_page() -> str:
    """Every variable of every component, grouped as in the code."""
    page = [
        "# Settings",
        NOTE.format(source="src/joulie/settings"),
        _SETTINGS_INTRO,
    ]
    for component, settings_class in COMPONENTS.items():
        page.append(f"## {component.capitalize()}\n")
        for part, settings in _parts(settings_class):
            if part is not settings_class:
                page.append(f"### {_heading(part)}\n")
            page.append(f"{(part.__doc__ or '').strip()}\n")
            rows = [[f"`{s.variable}`", _code(s.default), s.meaning, s.allowed] for s in settings]
            page.append(table(["variable", "default", "meaning", "allowed"], rows))
    return "\n".join(page)


def _heading(settings_class: type) -> str:
    name = settings_class.__name__.removesuffix("Settings")
    return {"Dvfs": "DVFS"}.get(name, name)


def _parts(settings_class: type) -> Iterator[tuple[type, list[SettingDescription]]]:
    """A component's own settings first, then those of each group inside it."""
    hints = get_type_hints(settings_class)
    fields = dataclasses.fields(settings_class)
    own = {field.metadata["variable"] for field in fields if "variable" in field.metadata}
    if own:
        yield settings_class, [setting for setting in describe(settings_class, {}) if setting.variable in own]
    for field in fields:
        if "variable" not in field.metadata:
            yield from _parts(hints[field.name])


def api_page() -> str:
    """Every field of every API object, from the schemas in the CustomResourceDefinitions."""
    page = [
        "# API objects",
        NOTE.format(source="src/joulie/model/api"),
        _API_INTRO,
    ]
    for kind, crd in zip(crds.KINDS, crds.crds(), strict=True):
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        page.append(f"## {kind.kind}\n")
        page.append(f"{schema['description']} `kubectl get {kind.plural}`, short `{kind.short}`.\n")
        page.append(table(["field", "type", "allowed", "meaning"], _field_rows(schema)))
    return "\n".join(page)


def _field_rows(schema: dict[str, Any], path: str = "") -> Iterator[list[str]]:
    for name, part in schema.get("properties", {}).items():
        if not path and name in ("apiVersion", "kind", "metadata"):
            continue
        needed = "; required" if name in schema.get("required", ()) else ""
        yield [f"`{path}{name}`", _type(part) + needed, _allowed(part), part["description"]]
        yield from _field_rows(part, f"{path}{name}.")
        yield from _field_rows(part.get("items", {}), f"{path}{name}[].")


def _type(part: dict[str, Any]) -> str:
    if "items" in part:
        return f"list of {part['items']['type']}"
    if "additionalProperties" in part:
        return f"map of {part['additionalProperties']['type']}"
    return "time (RFC 3339)" if part.get("format") == "date-time" else str(part["type"])


def _allowed(part: dict[str, Any]) -> str:
    rules = [rule["message"] for rule in part.get("x-kubernetes-validations", ())]
    if "enum" in part:
        rules.append(", ".join(_code(value) for value in part["enum"]))
    if "minimum" in part and "maximum" in part:
        above = "above " if part.get("exclusiveMinimum") else ""
        rules.append(f"{above}{part['minimum']:,} to {part['maximum']:,}")
    if "maxLength" in part:
        rules.append(f"{part['minLength']} to" if "minLength" in part else "up to")
        rules[-1] += f" {part['maxLength']} characters"
    elif "minLength" in part:
        rules.append("not empty")
    return "; ".join(rules)


def catalogue_page() -> str:
    """The known CPUs and GPUs, with the source of each number."""
    cpus = [
        [
            *(c.name, f"{c.cores:g}", f"{c.base_ghz:g} / {c.boost_ghz:g}", f"{c.tdp_w:g}"),
            *(_range(c.ctdp_min_w, c.ctdp_max_w), c.evidence, c.source),
        ]
        for c in CPUS
    ]
    gpus = [[g.name, g.vendor, _range(g.min_w, g.max_w), ", ".join(g.aliases), g.evidence, g.source] for g in GPUS]
    curves = [[c.name, *(f"{watts:g}" for watts in c.node_curve_w)] for c in CPUS if c.node_curve_w]
    return "\n".join([
        "# Hardware catalogue",
        NOTE.format(source="src/joulie/catalogue/builtin.py"),
        _CATALOGUE_INTRO,
        "## CPUs\n",
        "Per socket.\n",
        table(["model", "cores", "base / boost GHz", "TDP W", "cTDP W", "evidence", "source"], cpus),
        "## Power curves\n",
        "Watts of a two-socket server at the wall, by load, as published by SPEC.\n",
        table(["model", "idle", *(f"{load} %" for load in range(10, 101, 10))], curves),
        "## GPUs\n",
        "Per board.\n",
        table(["model", "vendor", "power limit W", "aliases", "evidence", "source"], gpus),
        "## Add your own\n",
        "`HARDWARE_CATALOG_PATH` names a TOML file; its entries take precedence over those above.\n",
        f"```toml\n{CATALOGUE_EXAMPLE}```\n",
    ])  # fmt: skip


CATALOGUE_EXAMPLE = """\
[[cpu]]
name = "EPYC 9754"
cores = 128
base_ghz = 2.25
boost_ghz = 3.1
tdp_w = 360
ctdp_min_w = 320
ctdp_max_w = 400
evidence = "official"
source = "AMD product specification"
# node_curve_w = [11 watts: a two-socket server idle, then at 10, 20 … 100 % load]

[[gpu]]
name = "A40"
vendor = "nvidia"
max_w = 300
min_w = 100
evidence = "official"
source = "NVIDIA A40 data sheet; lowest limit as nvidia-smi reports it"
aliases = ["A40-48Q"]
"""


def _range(low: float | None, high: float | None) -> str:
    if high is None:
        return ""
    return f"up to {high:g}" if low is None else f"{low:g} to {high:g}"


def table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _code(text: str) -> str:
    return f"`{text}`" if text else "(empty)"
