"""Words errors of pydantic so that they say what to write instead; values that may be secrets are not shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation

from pydantic_core import ErrorDetails

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


def message_of(error: ErrorDetails) -> str:
    """What is wrong, and what to write instead.

    Args:
        error: An item of `ValidationError.errors()`.
    """
    wording = _WORDING.get(error["type"])
    if wording is None:
        return str(error["msg"]).removeprefix("Value error, ")
    if error["type"] not in ("missing", "invalid_key") and error["input"] is None:  # such as a mere `web:`
        return "is empty; write its value or its keys, or remove it"
    return wording(error)
