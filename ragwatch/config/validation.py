"""Validates parts of the configuration, and words errors of pydantic so that they say what to write instead.

Values that may be secrets are not shown.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ragwatch.config.options import CRITERIA, InnerError, boolean_numbers, models_in
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
    """Validate the options of a kind. `extra` are keys that are read elsewhere."""
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
    """Validate `data`. Keys in `extra` are valid too, but read elsewhere; errors suggest them for misspelt keys."""
    try:
        return model.model_validate(data, context={CRITERIA: criteria})
    except ValidationError as error:
        lines = _explain_all(error.errors(include_url=False), where, lambda path: _valid_keys(model, path, extra))
        raise ConfigError("\n".join(lines)) from error


def _valid_keys(model: type[BaseModel], path: Sequence[object], extra: AbstractSet[str]) -> list[str]:
    """List the valid keys of the mapping that contains the last key of a path."""
    for part in path[:-1]:
        fields = (field for name, field in model.model_fields.items() if part in (name, field.alias))
        for inner in (inner for field in fields for inner in models_in(field.annotation)):
            model, extra = inner, frozenset()
    return sorted({*(field.alias or name for name, field in model.model_fields.items()), *extra})


def _explain_all(
    errors: Sequence[ErrorDetails], where: str, valid_keys: Callable[[tuple[int | str, ...]], list[str]]
) -> list[str]:
    """Format all errors of a model, one line per key.

    For a union, pydantic reports one error per member type: the errors inside a value replace those about the value as
    a whole, and the remaining errors of a key are joined. `where` is the path of the validated mapping; `valid_keys`
    returns the valid keys of the mapping that contains the last key of a path.
    """
    lines: dict[str, list[str]] = {}
    for error in errors:
        if error["type"] == "too_short" and len(error["input"]) >= error["ctx"]["min_length"]:
            continue  # pydantic counts the valid items only, and says of each other one what is wrong with it
        line = _explain(error, where, valid_keys(error["loc"]))
        place, _, message = line[len(where) :].partition(": ")  # `where` may hold the name of a file and a colon
        place = where + place
        if any(isinstance(part, str) and _MEMBER.fullmatch(part) for part in error["loc"]):
            lines = {other: messages for other, messages in lines.items() if not place.startswith(f"{other}[")}
        lines.setdefault(place, []).append(message)
    return [f"{place}: {' or '.join(_shorten(messages))}" for place, messages in lines.items()]


def _shorten(messages: Sequence[str]) -> list[str]:
    """Remove duplicates, and the common prefix of pydantic from all messages but the first."""
    first, *others = dict.fromkeys(messages)
    return [first, *(message.removeprefix("input should be ") for message in others)]


_MIN_SIMILARITY = 0.75  # of an unknown key and the suggested one, which excludes `follows` for `rows`
_MEMBER = re.compile(r"(str|int|float|bool|(list|dict|tuple|set)\[.*|(constrained|lax|function|nullable)-.*)")
"""Parts that pydantic adds to the path of an error for members of a union; no key of the configuration matches."""


def _explain(error: ErrorDetails, where: str, valid_keys: list[str]) -> str:
    """Format a pydantic error as `path.to.key: what is wrong, what to write instead`."""
    place = where
    for part in error["loc"]:
        if part == "[key]" or (isinstance(part, str) and _MEMBER.fullmatch(part)):
            continue
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else str(part)
    if error["type"] == "extra_forbidden":
        return f"{place}: is not a known key; {_suggestion(place, str(error['loc'][-1]), valid_keys)}"
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, InnerError) or (isinstance(cause, ValueError) and isinstance(cause.__cause__, ConfigError)):
        return f"{place}.{cause}"  # it names a key of the mapping
    message = _message_of(error)
    return f"{place}: {message[0].lower() + message[1:] if message[1:2].islower() else message}"


def _suggestion(place: str, key: str, valid_keys: Sequence[str]) -> str:
    """The valid key that is most similar to an unknown one, or all of them.

    >>> _suggestion("alerts.route_slo", "route_slo", ["job", "slos", "slos.routes"])
    'did you mean `alerts.slos.routes`?'
    """
    paths = {_words(valid): valid for valid in valid_keys if "." in valid}  # of keys that stand inside another one
    if similar := get_close_matches(_words(key), paths, n=1, cutoff=_MIN_SIMILARITY):
        return f"did you mean `{place.removesuffix(key)}{paths[similar[0]]}`?"
    similar = get_close_matches(key, valid_keys, n=1, cutoff=_MIN_SIMILARITY)
    return f"did you mean `{similar[0]}`?" if similar else f"use one of: {', '.join(valid_keys)}"


def _words(key: str) -> str:
    return " ".join(sorted(re.split(r"[._]", key)))


_SMALLEST, _LARGEST = Decimal("1e-12"), Decimal("1e12")  # of numbers that are written out in a message


def _number(error: ErrorDetails) -> str:
    """YAML 1.1 reads 1e-3 as a text, and so is a number in quotes or from a variable."""
    text = error["input"]
    try:
        number = Decimal(text) if isinstance(text, str) else None
    except InvalidOperation:
        number = None
    if number is None or not number.is_finite() or not (number == 0 or _SMALLEST <= abs(number) <= _LARGEST):
        return "is not a number; write one"
    return f"{text!r} is read as a text; write {number:f}, without quotes"


def _list(error: ErrorDetails) -> str:
    return f"is {'a text' if isinstance(error['input'], str) else 'not a list'}; write a list, such as [a, b]"


def _key(error: ErrorDetails) -> str:
    key = error["input"]  # YAML reads yes, no, on and off as booleans
    return f"the key {str(key).lower() if isinstance(key, bool) else key} is not a text; write it in quotes"


def _mapping(_: ErrorDetails) -> str:
    return "is not a mapping; write its keys below it"


def _too_short(error: ErrorDetails) -> str:
    least = error["ctx"]["min_length"]
    return f"is empty; give at least {least}" if not error["input"] else f"has too few items; give at least {least}"


_WORDING: Mapping[str, Callable[[ErrorDetails], str]] = {
    "missing": lambda _: "is missing; add it",
    "literal_error": lambda error: f"{error['input']!r} is not known; use {error['ctx']['expected']}",
    "string_pattern_mismatch": lambda error: (
        f"{error['input']!r} does not look right; it must match {error['ctx']['pattern']}"
    ),
    "string_type": lambda error: (
        f"is not a text; write {'it in quotes' if isinstance(error['input'], bool | int | float) else 'one'}"
    ),
    "invalid_key": _key,
    "path_type": lambda _: "is not a path; write one",
    "bool_type": lambda _: "is neither true nor false; write one of them",
    "int_type": lambda _: "is not a whole number; write one",
    "float_type": _number,
    "tuple_type": _list,
    "list_type": _list,
    "dict_type": _mapping,
    "model_type": _mapping,
    "too_short": _too_short,
    "too_long": lambda error: f"has more than {error['ctx']['max_length']} items; leave some out",
}


def _message_of(error: ErrorDetails) -> str:
    wording = _WORDING.get(error["type"])
    if wording is None:
        return str(error["msg"]).removeprefix("Value error, ")
    if error["type"] not in ("missing", "invalid_key") and error["input"] is None:  # such as a mere `web:`
        return "is empty; write its value or its keys, or remove it"
    return wording(error)
