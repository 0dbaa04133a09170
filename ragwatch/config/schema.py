"""Builds the JSON schema (2020-12) of the configuration file, for editors and validators, from the models that read it.

The schema describes what may be written, not what is stored: a duration is a number or a text such as 15m, and a number
may be a text with `${VARIABLE}`. What only shows when the whole file is read, such as a judge that follows another
one, is left to `ragwatch check`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from ragwatch import judges, probes, sources, stores
from ragwatch.config.canaries import CanaryItemOptions, SuitePlace
from ragwatch.config.judge_options import JudgeOptions
from ragwatch.config.model import Settings
from ragwatch.config.options import FrozenOptions, reject_boolean, reject_empty_path
from ragwatch.model.units import duration_seconds, size_bytes
from ragwatch.ports import Kind

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DEFINITIONS = "#/$defs/"
_VARIABLE = {"type": "string", "pattern": r"\$\{"}
_UNITS = {
    duration_seconds: {"type": "string", "pattern": r"^\s*[0-9.]+\s*(ms|[smhdw])\s*$|\$\{"},
    size_bytes: {"type": "string", "pattern": r"^\s*[0-9.]+\s*([kKMGT]i?)?B?\s*$|\$\{"},
}
_CHECKS = {check.__name__ for check in (reject_boolean, reject_empty_path, FrozenOptions.reject_boolean_number)}
"""Validators that refuse some values and convert none."""
_SPLIT = ("thresholds", "slos")
"""Sections whose key `routes` is read by a field of its own (`config/options.py: split_routes`)."""


class _Generator(GenerateJsonSchema):
    """Describes the input of validators that convert before pydantic does."""

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        return _or_variable(super().float_schema(schema), schema)

    def int_schema(self, schema: core_schema.IntSchema) -> JsonSchemaValue:
        return _or_variable(super().int_schema(schema), schema)

    def bool_schema(self, schema: core_schema.BoolSchema) -> JsonSchemaValue:
        return _or_variable(super().bool_schema(schema), schema)

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        return _or_variable(super().literal_schema(schema))

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        return _or_variable(super().enum_schema(schema))

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])  # defaults stand in docs/reference.md

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        """A text with a unit beside the number; anything that another converter takes."""
        inner = self.generate_inner(schema["schema"])
        function = schema["function"]["function"]
        if function in _UNITS:
            return {"anyOf": [inner, _UNITS[function]]}
        belongs_to_model = schema["schema"]["type"] == "model-fields"  # such a validator rearranges keys
        return inner if belongs_to_model or function.__name__ in _CHECKS else {}

    def function_plain_schema(self, schema: core_schema.PlainValidatorFunctionSchema) -> JsonSchemaValue:  # noqa: ARG002
        """Anything: the function does not declare what it takes."""
        return {}

    def str_schema(self, schema: core_schema.StringSchema) -> JsonSchemaValue:
        """A text; with conditions, or one with a variable."""
        described = super().str_schema(schema)
        return described if described == {"type": "string"} else _or_variable(described)


def _or_variable(described: JsonSchemaValue, schema: Mapping[str, object] = MappingProxyType({})) -> JsonSchemaValue:
    return described if schema.get("strict") else {"anyOf": [described, _VARIABLE]}


def json_schema() -> JsonSchemaValue:
    """Return the JSON schema of the configuration file."""
    definitions: JsonSchemaValue = {}
    root = _object(Settings, definitions)
    root["properties"].update(
        sources=_list(_kinds(sources.KINDS, definitions)),
        judges=_list(_kinds(judges.KINDS, definitions, common=JudgeOptions)),
        store=_kinds(stores.KINDS, definitions, default="sqlite"),
        canaries={"type": "array", "items": _suite(definitions)},
    )
    root["required"] = [*root.get("required", []), "sources"]
    return {"$schema": DIALECT, "title": "Configuration of ragwatch", **root, "$defs": definitions}


def _suite(definitions: JsonSchemaValue) -> JsonSchemaValue:
    suite = _object(SuitePlace, definitions)
    suite["properties"].update(
        file={"type": "string"},
        items={"type": "array", "items": _object(CanaryItemOptions, definitions)},
        probe=_kinds(probes.KINDS, definitions),
    )
    return {
        **suite,
        "required": [*suite.get("required", []), "probe"],
        "oneOf": [{"required": ["file"]}, {"required": ["items"]}],
    }


def _kinds(
    kinds: Mapping[str, Kind[object]],
    definitions: JsonSchemaValue,
    common: type[BaseModel] | None = None,
    default: str | None = None,
) -> JsonSchemaValue:
    cases = []
    for name, kind in sorted(kinds.items()):
        options = _object(kind.Options, definitions)
        if common is not None:
            more = _object(common, definitions)
            options["properties"] = {**more["properties"], **options["properties"]}
            options["required"] = [*more.get("required", []), *options.get("required", [])]
        options["properties"] = {"kind": {"const": name}, **options["properties"]}
        named = [] if name == default else ["kind"]
        is_kind = {"type": "object", "properties": {"kind": {"const": name}}, "required": named}
        cases.append({"if": is_kind, "then": options})
    return {
        "type": "object",
        "required": [] if default else ["kind"],
        "properties": {"kind": {"enum": sorted(kinds)}},
        "allOf": cases,
    }


def _object(model: type[BaseModel], definitions: JsonSchemaValue) -> JsonSchemaValue:
    """The schema of a model; those of the models inside it are added to `definitions`."""
    schema = _schema_of(model)
    own = schema.pop("$defs", {})
    for definition in (schema, *own.values()):
        _join_routes(definition)
    for name, definition in own.items():
        if definitions.setdefault(name, definition) != definition:
            raise ValueError(f"two models of the configuration have the name {name}; rename one")
    return {key: value for key, value in schema.items() if key != "title"}


def _schema_of(model: type[BaseModel]) -> JsonSchemaValue:
    core: CoreSchema = model.__pydantic_core_schema__
    schema = _Generator(by_alias=True).generate(core)
    return schema.get("$defs", {}).pop(schema["$ref"].removeprefix(_DEFINITIONS)) if "$ref" in schema else schema


def _join_routes(schema: JsonSchemaValue) -> None:
    """Write `KEY.routes` as the key `routes` of the section KEY."""
    properties = schema.get("properties", {})
    for key in _SPLIT:
        if (routes := properties.pop(f"{key}.routes", None)) is not None:
            section = properties[key]
            target = section["anyOf"][0] if "anyOf" in section else section
            target.setdefault("properties", {})["routes"] = routes
            if "propertyNames" in target:
                target["propertyNames"] = {"anyOf": [target["propertyNames"], {"const": "routes"}]}


def _list(items: JsonSchemaValue) -> JsonSchemaValue:
    return {"type": "array", "minItems": 1, "items": items}
