"""Files made from the code do not drift, and the CustomResourceDefinitions are what an API server takes."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner
from jsonschema import Draft4Validator

from joulie.catalogue.entries import CpuModel, GpuModel
from joulie.catalogue.lookup import Catalogue, extend
from joulie.cluster.crds.definitions import KINDS, RULES, ApiKind, crds, crds_yaml
from joulie.cluster.crds.schemas import schema_of
from joulie.settings import COMPONENTS, describe
from tools.generate import files as generate
from tools.generate import reference

ROOT = Path(__file__).resolve().parents[2]
CRDS = {crd["spec"]["names"]["kind"]: crd for crd in crds()}
CLASSES = {kind.kind: kind.api_class for kind in KINDS}
SCALARS = {"string", "number", "integer", "boolean"}
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)


def schema(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = CRDS[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def sample(kind: str, **parts: Any) -> dict[str, Any]:
    return {"apiVersion": "joulie.io/v1alpha1", "kind": kind, "metadata": {"name": "node-1"}, **parts}


# --- drift ---------------------------------------------------------------------------------------------------------


def test_generated_files_agree_with_the_code() -> None:
    assert generate.drifted(ROOT) == [], generate.HINT


def test_check_names_every_drifted_file_and_the_remedy(tmp_path: Path) -> None:
    run = CliRunner().invoke
    assert run(generate.command, ["--root", str(tmp_path)]).exit_code == 0
    assert run(generate.command, ["--check", "--root", str(tmp_path)]).exit_code == 0
    (tmp_path / "docs/reference/api.md").write_text("by hand")
    (tmp_path / "deploy/chart/joulie/crds/nodetwins.joulie.io.yaml").unlink()
    (tmp_path / "deploy/chart/joulie/crds/gone.joulie.io.yaml").write_text("")

    result = run(generate.command, ["--check", "--root", str(tmp_path)])

    assert result.exit_code == 1
    named = [line.partition(":")[0] for line in result.stderr.splitlines()]
    assert named == [
        "deploy/chart/joulie/crds/gone.joulie.io.yaml",
        "deploy/chart/joulie/crds/nodetwins.joulie.io.yaml",
        "docs/reference/api.md",
    ]
    assert all("make generate" in line for line in result.stderr.splitlines())
    run(generate.command, ["--root", str(tmp_path)])
    assert generate.drifted(tmp_path) == []


def test_generating_twice_gives_the_same_bytes() -> None:
    assert generate.generated_files() == generate.generated_files()


# --- reference pages -----------------------------------------------------------------------------------------------


def test_the_settings_page_has_every_setting_of_every_component_once() -> None:
    sections = reference.settings_page().split("\n## ")[1:]
    for (name, settings_class), section in zip(COMPONENTS.items(), sections, strict=True):
        assert section.startswith(name.capitalize())
        for setting in describe(settings_class, {}):
            assert section.count(f"| `{setting.variable}` |") == 1, setting.variable
            assert setting.meaning in section


def test_the_api_page_has_a_row_for_every_field() -> None:
    page = reference.api_page()
    for kind in CLASSES:
        section = page.split(f"\n## {kind}\n")[1].split("\n## ")[0]
        for path, part in properties(schema(kind)):
            if path.split(".")[0] in ("spec", "status"):
                assert f"| `{path}` |" in section
                assert part["description"] in section


def test_the_catalogue_page_quotes_every_model_with_its_source() -> None:
    page = reference.catalogue_page()
    models: list[CpuModel | GpuModel] = [*Catalogue().cpus, *Catalogue().gpus]
    for model in models:
        row = next(line for line in page.splitlines() if line.startswith(f"| {model.name} |"))
        assert f"| {model.evidence} | {model.source} |" in row
    assert "| EPYC 9654 | 128 | 257 | 300 | 340 | 378 | 410 | 442 | 498 | 577 | 697 | 817 |" in page


def test_the_catalogue_file_on_the_page_can_be_read() -> None:
    page = reference.catalogue_page()
    example = page.split("```toml\n")[1].split("```")[0]
    catalogue = extend(Catalogue(), tomllib.loads(example), "the page")
    assert catalogue.cpu("AMD EPYC 9754 128-Core Processor") == catalogue.cpus[0]
    assert catalogue.gpu("NVIDIA-A40") == catalogue.gpus[0]


# --- structure -----------------------------------------------------------------------------------------------------


def properties(part: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, child in part.get("properties", {}).items():
        yield path + name, child
        yield from properties(child, f"{path}{name}.")
        yield from properties(child.get("items", {}), f"{path}{name}[].")


def structural_faults(part: dict[str, Any], path: str = "") -> Iterator[str]:
    """What an API server refuses in a schema, of the things that a generator can get wrong."""
    allowed = {"description", "type", "format", "enum", "x-kubernetes-validations"}
    match part.get("type"):
        case "object":
            allowed |= {"properties", "required", "additionalProperties"}
            if "properties" in part and "additionalProperties" in part:
                yield f"{path}: both properties and additionalProperties"
            if missing := set(part.get("required", ())) - set(part.get("properties", ())):
                yield f"{path}: requires {missing}, which are not there"
            for name, child in part.get("properties", {}).items():
                yield from structural_faults(child, f"{path}.{name}")
            if "additionalProperties" in part:
                yield from structural_faults(part["additionalProperties"], f"{path}[*]")
        case "array":
            allowed |= {"items", "minItems", "maxItems", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"}
            yield from structural_faults(part.get("items", {}), f"{path}[]")
        case "string":
            allowed |= {"minLength", "maxLength", "pattern"}
        case "number" | "integer":
            allowed |= {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
        case "boolean":
            pass
        case other:
            yield f"{path}: type {other}"
    if unknown := set(part) - allowed:
        yield f"{path}: {unknown}"


@each_kind
def test_schemas_are_structural(kind: ApiKind) -> None:
    assert list(structural_faults(schema(kind.kind), kind.kind)) == []


@pytest.mark.parametrize(
    "broken",
    [
        {"properties": {}},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}},
        {"type": "object", "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "string", "title": "A"}}},
        {"type": "array"},
        {"type": "number", "multipleOf": 1},
    ],
)
def test_the_structure_check_sees_what_it_should(broken: dict[str, Any]) -> None:
    assert list(structural_faults(broken)) != []


@each_kind
def test_every_field_says_what_it_means(kind: ApiKind) -> None:
    parts = dict(properties(schema(kind.kind)))
    assert parts.pop("metadata") == {"type": "object"}  # an API server refuses anything more
    assert [path for path, part in parts.items() if len(part.get("description", "")) < 5] == []


@each_kind
def test_definitions_carry_what_kubectl_needs(kind: ApiKind) -> None:
    crd = CRDS[kind.kind]
    names = crd["spec"]["names"]
    assert crd["apiVersion"] == "apiextensions.k8s.io/v1"
    assert crd["metadata"]["name"] == f"{names['plural']}.joulie.io"
    assert crd["spec"]["scope"] == "Cluster"
    assert names["categories"] == ["joulie"]
    assert names["shortNames"] == [kind.short]
    (version,) = crd["spec"]["versions"]
    assert (version["name"], version["served"], version["storage"]) == ("v1alpha1", True, True)
    assert version["subresources"] == {"status": {}}


def test_plural_and_short_names_are_the_published_ones() -> None:
    assert {(kind.kind, kind.plural, kind.short) for kind in KINDS} == {
        ("NodeHardware", "nodehardwares", "nhw"),
        ("NodeTwin", "nodetwins", "nt"),
        ("NodePowerProfile", "nodepowerprofiles", "npp"),
        ("PowerBudget", "powerbudgets", "pb"),
        ("TelemetryProfile", "telemetryprofiles", "tp"),
    }


@each_kind
def test_printer_columns_point_at_fields_that_exist(kind: ApiKind) -> None:
    fields = dict(properties(schema(kind.kind))) | {"metadata.creationTimestamp": {"type": "string"}}
    shown = {"date": {"string"}, "integer": {"integer", "number"}, "string": {"string"}, "boolean": {"boolean"}}
    for column in CRDS[kind.kind]["spec"]["versions"][0]["additionalPrinterColumns"]:
        field = fields.get(re.sub(r'\[\?\(@\.type=="\w+"\)\]', "[]", column["jsonPath"].removeprefix(".")))
        assert field is not None, column
        assert field["type"] in shown[column["type"]], column


def test_a_list_of_twins_shows_state_caps_power_and_what_the_agent_did() -> None:
    columns = CRDS["NodeTwin"]["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [column["name"] for column in columns if not column.get("priority")] == [
        *("Profile", "State", "CPU-Cap%", "GPU-Cap%", "Power-W", "Budget-W", "Headroom", "Cooling"),
        *("Enforced", "Policy", "Updated"),
    ]


@each_kind
def test_conditions_are_a_list_that_several_writers_can_share(kind: ApiKind) -> None:
    conditions = schema(kind.kind)["properties"]["status"]["properties"]["conditions"]
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert set(conditions["items"]["required"]) == {"type", "status"}
    fields = {"type", "status", "reason", "message", "lastTransitionTime", "observedGeneration"}
    assert set(conditions["items"]["properties"]) == fields


def test_rules_over_several_fields_reach_the_definition() -> None:
    placed = {
        (kind, place, rule["rule"])
        for kind in CLASSES
        for path, part in properties(schema(kind))
        for place, here in ((path, part), (f"{path}[]", part.get("items", {})))
        for rule in here.get("x-kubernetes-validations", ())
    }
    assert placed == {(kind, path, rule) for (kind, path), rules in RULES.items() for rule, _ in rules}
    assert ("TelemetryProfile", "spec.target", "self.scope != 'node' || has(self.nodeName)") in placed


def test_yaml_documents_are_the_definitions() -> None:
    assert list(yaml.safe_load_all(crds_yaml())) == crds()


def test_a_type_without_a_form_in_kubernetes_is_refused() -> None:
    class Odd(msgspec.Struct):
        when: complex

    with pytest.raises(TypeError, match="cannot express"):
        schema_of(Odd)


# --- the schema and the decoder agree ------------------------------------------------------------------------------

ACCEPTED = [
    sample("NodeTwin"),
    sample("NodeTwin", spec={"nodeName": "node-1", "profile": "eco", "cpu": {"packagePowerCapPctOfMax": 60}}),
    sample("NodeTwin", spec={"gpu": {"powerCap": {"scope": "perGpu", "capWattsPerGpu": 350.5}}}),
    sample("NodeTwin", status={"schedulableClass": "draining", "estimatedPUE": 1.31, "futureField": 3}),
    sample("NodeTwin", status={"controlStatus": {"gpu": {"result": "blocked", "message": "no permission"}}}),
    sample("NodeTwin", status={"powerMeasurement": {"source": "kepler", "powerTrendWPerMin": -12.5}}),
    sample("NodePowerProfile", spec={"nodeName": "node-1", "profile": "performance"}),
    sample("NodeHardware", status={"cpu": {"sockets": 2, "warnings": ["no RAPL"]}, "memory": {"totalBytes": 2**40}}),
    sample("NodeHardware", spec={}),
    sample("TelemetryProfile", spec={"target": {"scope": "cluster", "nodeSelector": {"matchLabels": {"a": "b"}}}}),
    sample(
        "TelemetryProfile",
        spec={
            "target": {"scope": "node", "nodeName": "node-1"},
            "sources": {"cpu": {"type": "http", "http": {"endpoint": "http://sim/{node}", "timeoutSeconds": 0.5}}},
            "controls": {"gpu": {"type": "none"}},
        },
    ),
]
REFUSED = [
    sample("NodeTwin", spec={"profile": "turbo"}),
    sample("NodeTwin", spec={"cpu": {"packagePowerCapPctOfMax": 101}}),
    sample("NodeTwin", spec={"cpu": {"packagePowerCapWatts": -1}}),
    sample("NodeTwin", spec={"cpu": {"packagePowerCapWatts": "120"}}),
    sample("NodeTwin", spec={"nodeName": ""}),
    sample("NodeTwin", spec={"gpu": {"powerCap": {"scope": "node"}}}),
    sample("NodeTwin", status={"powerMeasurement": {"source": "guess"}}),
    sample("NodeTwin", status={"controlStatus": {"cpu": {"message": "x" * 1025}}}),
    sample("NodePowerProfile"),
    sample("NodePowerProfile", spec={"profile": "eco"}),
    sample("NodePowerProfile", spec={"nodeName": "node-1"}),
    sample("NodeHardware", status={"cpu": {"sockets": 1.5}}),
    sample("NodeHardware", status={"cpu": {"warnings": "none"}}),
    sample("NodeHardware", status={"gpu": {"present": "yes"}}),
    sample("TelemetryProfile", spec={"target": {"scope": "rack"}}),
    sample("TelemetryProfile", spec={"target": {"scope": "cluster", "nodeSelector": {"matchLabels": {"a": 1}}}}),
    sample(
        "TelemetryProfile",
        spec={
            "target": {"scope": "cluster"},
            "sources": {"cpu": {"type": "http", "http": {"endpoint": "http://x", "timeoutSeconds": 0}}},
        },
    ),
    sample("TelemetryProfile", spec={"target": {"scope": "cluster"}, "sources": {"cpu": {"type": "http", "http": {}}}}),
]


@pytest.mark.parametrize("document", ACCEPTED, ids=msgspec.json.encode)
def test_what_the_cluster_stores_we_can_read(document: dict[str, Any]) -> None:
    Draft4Validator(schema(document["kind"])).validate(document)
    msgspec.convert(document, CLASSES[document["kind"]])


@pytest.mark.parametrize("document", REFUSED, ids=msgspec.json.encode)
def test_what_we_cannot_read_the_cluster_refuses(document: dict[str, Any]) -> None:
    assert not Draft4Validator(schema(document["kind"])).is_valid(document)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(document, CLASSES[document["kind"]])


@pytest.mark.parametrize("document", ACCEPTED, ids=msgspec.json.encode)
def test_objects_survive_a_round_trip_and_are_written_without_nulls(document: dict[str, Any]) -> None:
    api_class: Any = CLASSES[document["kind"]]
    first = msgspec.convert(document, api_class)
    written = msgspec.json.encode(first)
    assert msgspec.json.decode(written, type=api_class) == first
    assert b"null" not in written
    # An API server takes 2.0 for the integer 2; the validator here needs to be told.
    whole = json.loads(written, parse_float=lambda text: int(float(text)) if text.endswith(".0") else float(text))
    Draft4Validator(schema(document["kind"])).validate(whole)
