"""Validates a part of the configuration against a model, or against the options of its kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ragwatch.config.options import CRITERIA, boolean_numbers, models_in
from ragwatch.config.text import explain_all
from ragwatch.errors import ConfigError
from ragwatch.ports import Kind

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class KindConfig:
    """Name of a kind, and its options."""

    kind: str
    options: BaseModel


def read_kind(
    kinds: Mapping[str, Kind[object]],
    item: object,
    where: str,
    *,
    extra: AbstractSet[str] = frozenset(),
    default: str | None = None,
) -> KindConfig:
    """Validate the options of a kind. `extra` are keys that are read elsewhere.

    Raises:
        ConfigError: The errors, one per line.
    """
    if not isinstance(item, dict):
        raise ConfigError(f"{where}: must be a mapping with a key `kind`")
    kind = item.get("kind", default)
    if not isinstance(kind, str) or kind not in kinds:
        raise ConfigError(f"{where}.kind: {kind!r} is not known; use one of: {', '.join(sorted(kinds))}")
    options = {key: value for key, value in item.items() if key != "kind"}
    model = kinds[kind].Options
    if booleans := list(boolean_numbers(model, options)):  # which pydantic would read as 1 and 0
        lines = (f"{where}.{path}: {str(value).lower()} is not a number; write one" for path, value in booleans)
        raise ConfigError("\n".join(lines))
    return KindConfig(kind, read_model(model, options, where, extra={*extra, "kind"}))


def read_model(
    model: type[M],
    data: Mapping[str, object],
    where: str,
    *,
    extra: AbstractSet[str] = frozenset(),
    criteria: frozenset[str] = frozenset(),
) -> M:
    """Validate `data`. Keys in `extra` are valid too, but read elsewhere; errors suggest them for misspelt keys.

    Raises:
        ConfigError: The errors, one per line.
    """
    try:
        return model.model_validate(data, context={CRITERIA: criteria})
    except ValidationError as error:
        lines = explain_all(error.errors(include_url=False), where, lambda path: _valid_keys(model, path, extra))
        raise ConfigError("\n".join(lines)) from error


def _valid_keys(model: type[BaseModel], path: Sequence[object], extra: AbstractSet[str]) -> list[str]:
    """List the valid keys of the mapping that contains the last key of a path."""
    for part in path[:-1]:
        fields = (field for name, field in model.model_fields.items() if part in (name, field.alias))
        for inner in (inner for field in fields for inner in models_in(field.annotation)):
            model, extra = inner, frozenset()
    return sorted({*(field.alias or name for name, field in model.model_fields.items()), *extra})
