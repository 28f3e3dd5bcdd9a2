"""OpenAPI v3 schemas of the API classes, in the structural form that CustomResourceDefinitions require.

An optional field is not required, rather than nullable: absent fields are never written.
"""

from __future__ import annotations

from typing import Any

from msgspec import inspect

Schema = dict[str, Any]


def schema_of(api_class: type) -> Schema:
    """The schema of a class in `model.api`, with all references inlined."""
    return _schema(inspect.type_info(api_class))


def _schema(type_: inspect.Type) -> Schema:
    match type_:
        case inspect.Metadata(type=inner, extra_json_schema=extra):
            return _described(_schema(inner), extra or {})
        case inspect.UnionType(types=(inner, inspect.NoneType()) | (inspect.NoneType(), inner)):
            return _schema(inner)
        case inspect.StructType():
            return _object(type_)
        case inspect.DictType(value_type=values):
            return {"type": "object", "additionalProperties": _schema(values)}
        case inspect.ListType(item_type=items):
            limits = {"minItems": type_.min_length, "maxItems": type_.max_length}
            sizes = {key: limit for key, limit in limits.items() if limit is not None}
            return {"type": "array", **sizes, "items": _schema(items)}
        case _:
            return _scalar(type_)


def _scalar(type_: inspect.Type) -> Schema:
    match type_:
        case inspect.LiteralType(values=values):
            return {"type": "string", "enum": list(values)}
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.StrType():
            limits = {"minLength": type_.min_length, "maxLength": type_.max_length, "pattern": type_.pattern}
            return {"type": "string"} | {key: limit for key, limit in limits.items() if limit is not None}
        case inspect.FloatType() | inspect.IntType():
            return _number(type_)
        case _:
            raise TypeError(f"a CustomResourceDefinition cannot express {type_}")


def _object(type_: inspect.StructType) -> Schema:
    schema: Schema = {"description": _sentence(type_.cls.__doc__), "type": "object"}
    if required := [field.encode_name for field in type_.fields if field.required]:
        schema["required"] = required
    if type_.fields:
        schema["properties"] = {field.encode_name: _schema(field.type) for field in type_.fields}
    return schema


def _number(type_: inspect.FloatType | inspect.IntType) -> Schema:
    whole = isinstance(type_, inspect.IntType) or type_.multiple_of == 1
    schema: Schema = {"type": "integer" if whole else "number"}
    if type_.ge is not None:
        schema |= {"minimum": _plain(type_.ge)}
    elif type_.gt is not None:
        schema |= {"minimum": _plain(type_.gt), "exclusiveMinimum": True}
    if type_.le is not None:
        schema |= {"maximum": _plain(type_.le)}
    elif type_.lt is not None:
        schema |= {"maximum": _plain(type_.lt), "exclusiveMaximum": True}
    return schema


def _plain(number: float) -> float | int:
    """`100` rather than `100.0`."""
    return int(number) if number == int(number) else number


def _described(schema: Schema, extra: Schema) -> Schema:
    """The field's own description, then that of its class; only the latter if it says the same."""
    own, general = _sentence(extra.get("description")), schema.get("description", "")
    description = general if _says(general, own) else f"{own} {general}".strip()
    rest = {key: value for key, value in (schema | extra).items() if key != "description"}
    return {"description": description} | rest


def _says(text: str, said: str) -> bool:
    """Whether a text contains a sentence, or all of its longer words."""
    longer_words = {word for word in said.lower().rstrip(".").split() if len(word) > 4}
    repeated = bool(longer_words) and longer_words <= set(text.lower().rstrip(".").replace(";", "").split())
    return repeated or said.lower().rstrip(".") in text.lower()


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split())
