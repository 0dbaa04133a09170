"""Suites: canaries out of YAML, JSONL or the configuration itself. What is wrong is told with its place.

A suite file is not configuration: `${NAME}` and `file:` in a question are left as they stand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ragwatch.config.text import MOST_BYTES, explain_all, load_text
from ragwatch.core.canary.definition import Canary, Category, Expected, Grade, name_of
from ragwatch.errors import ConfigError

MOST_CANARIES = 10_000
MOST_JSONL_BYTES = 16 * MOST_BYTES
_GRADES = {"relevant": Grade.RELEVANT, "highly_relevant": Grade.HIGHLY_RELEVANT}


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("is empty; write a text")
    return value


def _number(value: object) -> object:
    if isinstance(value, bool | str):
        raise ValueError(f"{value!r} is not a number; write one")  # noqa: TRY004 - pydantic wants ValueError
    return value


Text = Annotated[str, AfterValidator(_not_blank)]
Number = Annotated[float, BeforeValidator(_number)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ExpectedItem(_Model):
    """One expected context, as it is written: by id, by text, or both."""

    id: Text | None = None
    text: Text | None = None
    grade: Literal["relevant", "highly_relevant"] = "relevant"


def _expected(value: object) -> object:
    if isinstance(value, str):
        return {"id": value}
    if isinstance(value, int) and not isinstance(value, bool):
        return {"id": str(value)}
    return value


class CanaryItemOptions(_Model):
    """One canary, as it is written; see `core.canary.Canary` for what the keys mean."""

    query: Text
    expected: tuple[Annotated[ExpectedItem, BeforeValidator(_expected)], ...] = ()
    name: Text | None = Field(None, max_length=128)
    category: Category = Category.SIMPLE_FACTUAL
    min_relevance_score: Number | None = None
    min_recall: Number = Field(1.0, gt=0.0, le=1.0)
    reference: Text | None = None
    tags: tuple[Text, ...] = ()


def read_suite(path: Path) -> tuple[Canary, ...]:
    """The canaries in a file: a list under `items:` in YAML, or one JSON object a line where it ends in `.jsonl`.

    Raises:
        ConfigError: It cannot be read, or what is wrong in it, one line each.
    """
    if path.suffix == ".jsonl":
        numbers, items = _lines(path)
        return _canaries(items, [f"{path.name} line {number}" for number in numbers], path.name)
    data = load_text(path)
    for key in data:
        if key != "items":
            raise ConfigError(f"{path.name}: {key}: is not a known key; use `items`, the list of canaries")
    return canaries(data.get("items"), f"{path.name}: items")


def canaries(items: object, where: str) -> tuple[Canary, ...]:
    """The canaries of a list that stands in the configuration at `where`.

    Raises:
        ConfigError: What is wrong, one line each.
    """
    if not isinstance(items, list):
        raise ConfigError(f"{where}: must be a list of canaries such as {{query: ..., expected: [id]}}")
    return _canaries(items, [f"{where}[{index}]" for index in range(len(items))], where)


def _canaries(items: Sequence[object], places: Sequence[str], where: str) -> tuple[Canary, ...]:
    if not items:
        raise ConfigError(f"{where}: is empty; give at least one canary")
    if len(items) > MOST_CANARIES:
        raise ConfigError(f"{where}: {len(items)} canaries, more than {MOST_CANARIES}; split the suite")
    wrong: list[str] = []
    found: list[Canary] = []
    names: dict[str, str] = {}
    for item, place in zip(items, places, strict=True):
        try:
            canary = _canary(item, place)
        except ConfigError as error:
            wrong.append(str(error))
            continue
        if canary.name in names:
            wrong.append(f"{place}.name: {canary.name!r} is taken by {names[canary.name]}; give another `name`")
        names.setdefault(canary.name, place)
        found.append(canary)
    if wrong:
        raise ConfigError("\n".join(wrong))
    return tuple(found)


def _canary(item: object, place: str) -> Canary:
    if not isinstance(item, Mapping):
        raise ConfigError(f"{place}: must be a mapping such as {{query: ..., expected: [id]}}")
    try:
        read = CanaryItemOptions.model_validate(item)
    except ValidationError as error:
        lines = explain_all(error.errors(include_url=False), place, _known)
        raise ConfigError("\n".join(lines)) from error
    try:
        return Canary(
            read.name or name_of(read.query),
            read.query,
            tuple(_context(each, f"{place}.expected[{index}]") for index, each in enumerate(read.expected)),
            read.category,
            read.min_relevance_score,
            read.min_recall,
            read.reference,
            read.tags,
        )
    except ValueError as error:
        raise ConfigError(f"{place}: {error}") from error


def _context(item: ExpectedItem, place: str) -> Expected:
    try:
        return Expected(item.id, item.text, _GRADES[item.grade])
    except ValueError as error:
        raise ConfigError(f"{place}: {error}") from error


def _known(path: Sequence[object]) -> list[str]:
    return sorted((ExpectedItem if len(path) > 1 and path[0] == "expected" else CanaryItemOptions).model_fields)


def _lines(path: Path) -> tuple[list[int], list[Any]]:
    """Numbers and values of the lines that are not blank."""
    try:
        if path.stat().st_size > MOST_JSONL_BYTES:
            raise ConfigError(f"{path.name}: larger than {MOST_JSONL_BYTES} bytes; split the suite")
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    numbers, items, wrong = [], [], []
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            items.append(orjson.loads(line))
            numbers.append(number)
        except orjson.JSONDecodeError as error:
            wrong.append(f"{path.name} line {number}: is not JSON: {error}; write one object a line")
    if wrong:
        raise ConfigError("\n".join(wrong))
    return numbers, items
