"""Base class of the configuration models, what their fields take, and the field types that several of them share."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator
from pydantic.fields import FieldInfo

from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.model.units import duration_seconds, size_bytes

HOUR, DAY = 3600.0, 86400.0


class InnerError(ValueError):
    """What is wrong with a key of the mapping that is validated; the message begins with the key."""


class FrozenOptions(BaseModel):
    """An immutable section of the configuration.

    Forbids unknown keys, the numbers `.nan` and `.inf`, and true and false in place of a number.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def reject_boolean_number(cls, value: object, info: ValidationInfo) -> object:
        """Reject true and false where the field is a number."""
        field = cls.model_fields[info.field_name or ""]
        return reject_boolean(value) if _is_number(field) else value


def _is_number(field: FieldInfo) -> bool:
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
        if isinstance(value, bool) and _is_number(field):
            yield key, value
        elif isinstance(value, Mapping):
            for inner in models_in(field.annotation):
                yield from ((f"{key}.{path}", item) for path, item in boolean_numbers(inner, value))


def split_routes(data: object, key: str) -> object:
    """Move `routes` out of the mapping under a key to the key `KEY.routes`, where the model has a field for it.

    >>> split_routes({"slos": {"faithfulness": 0.9, "routes": {"faq": {}}}}, "slos")
    {'slos': {'faithfulness': 0.9}, 'slos.routes': {'faq': {}}}
    """
    section = data.get(key) if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(section, dict) or "routes" not in section:
        return data
    everywhere = {name: value for name, value in section.items() if name != "routes"}
    others = {name: value for name, value in data.items() if name != key}
    return {**others, **({key: everywhere} if everywhere else {}), f"{key}.routes": section["routes"]}


def must(holds: Callable[..., object], fault: str) -> AfterValidator:
    """Refuse a value for which something does not hold. `fault` may show the value as `{value!r}`."""

    def check(value: object) -> object:
        if not holds(value):
            raise ValueError(fault.format(value=value))
        return value

    return AfterValidator(check)


def reject_boolean(value: object) -> object:
    """Reject true and false: YAML reads yes, no, on and off as booleans, and pydantic reads booleans as 1 and 0."""
    if isinstance(value, bool):
        raise ValueError(f"{str(value).lower()} is not a number; write one")  # noqa: TRY004 - pydantic wants ValueError
    return value


def reject_empty_path(value: object) -> object:
    """Reject an empty text, such as that of an empty variable: as a path it is the working directory."""
    if value == "":
        raise ValueError("is empty; write a path, or remove this key")
    return value


def criteria_of(info: ValidationInfo) -> frozenset[str]:
    """Names of the configured criteria, from the context of the validation."""
    names: frozenset[str] = (info.context or {}).get(CRITERIA, frozenset())
    return names


def _quantity(value: object, info: ValidationInfo) -> object:
    """The quantity of a name; names of criteria are known from the context of the validation."""
    criteria = criteria_of(info)
    if isinstance(value, Quantity) or not isinstance(value, str) or not criteria:
        return value
    if value not in {*Quantity, *criteria}:
        names = ", ".join((*Quantity, *sorted(criteria)))
        raise ValueError(f"{value!r} is no quantity, and no name of `criteria`; use one of: {names}")
    return quantity_of(value)


CRITERIA = "criteria"
"""Key of the context of a validation that has the names of the configured criteria."""
AnyQuantity = Annotated[Quantity, BeforeValidator(_quantity)]
_Number = BeforeValidator(reject_boolean)
FilePath = Annotated[Path, BeforeValidator(reject_empty_path)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
# Prometheus allows any label value; characters that need escapes in PromQL, URLs or YAML are left out.
Route = Annotated[str, Field(pattern=r"^[A-Za-z0-9_./:{}~-]{1,128}$")]
# A weight is 1 / probability: below one in a million, one answer would outweigh all others for months.
Probability = Annotated[float, Field(ge=1e-6, le=1.0), _Number]
Ratio = Annotated[float, Field(ge=0.0, le=1.0), _Number]
StrictRatio = Annotated[float, Field(ge=0.0, le=1.0, strict=True)]  # not a number in quotes or from a variable
Seconds = Annotated[float, BeforeValidator(duration_seconds), Field(gt=0.0), _Number]
Bytes = Annotated[int, BeforeValidator(size_bytes), Field(ge=0), _Number]
