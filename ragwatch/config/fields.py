"""What the fields of a model take: numbers, and models of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo


def is_number(field: FieldInfo) -> bool:
    """Whether a field takes a number and neither a boolean nor a text. Fields that convert check what they take."""
    members = set(_members(field.annotation))
    converts = any(isinstance(item, BeforeValidator) for item in field.metadata)
    return not converts and not members.isdisjoint({int, float}) and members.isdisjoint({bool, str})


def _members(annotation: object) -> Iterator[object]:
    """The members of a union, or the type itself; without what `Annotated` says about it."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _members(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for member in get_args(annotation):
            yield from _members(member)
    else:
        yield annotation


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """The models of an optional section, of the items of a list, and of the values of a mapping."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)


def boolean_numbers(model: type[BaseModel], data: Mapping[str, object]) -> Iterator[tuple[str, bool]]:
    """Paths in data, and values, of true and false where a model has a number."""
    for key, value in data.items():
        field = model.model_fields.get(key)
        if field is None:
            continue
        if isinstance(value, bool) and is_number(field):
            yield key, value
        elif isinstance(value, Mapping):
            for inner in models_in(field.annotation):
                yield from ((f"{key}.{path}", item) for path, item in boolean_numbers(inner, value))
