"""Expressions: JMESPath over a reply, and the passages that one finds."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Literal, get_args

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions

from ragwatch.core.canary.definition import Hit
from ragwatch.probes.failure import shape

Column = Literal["id", "text", "score"]
MOST_HITS = 1000


def checked(expression: str) -> str:
    """The expression, if it is one.

    Raises:
        ValueError: It cannot be read, or calls a function that JMESPath does not have: that would only show at the
            first reply that gets as far.
    """
    try:
        waiting: list[Any] = [jmespath.compile(expression).parsed]
    except JMESPathError as error:
        raise ValueError(f"is not JMESPath: {' '.join(str(error).split())[:200]}") from error
    while waiting:
        node = waiting.pop()
        if node["type"] == "function_expression" and node["value"] not in Functions.FUNCTION_TABLE:
            raise ValueError(f"JMESPath has no function {node['value']!r}; use one of its own")
        waiting.extend(child for child in node["children"] if isinstance(child, dict))
    return expression


def search(expression: str, reply: object, key: str) -> Any:  # noqa: ANN401 - any JSON value
    """What the expression finds; None where it finds nothing.

    Raises:
        ExchangeError: It fails on this reply (`shape`); the message names `key`.
    """
    try:
        return jmespath.compile(expression).search(reply)  # jmespath keeps what it compiled
    except (JMESPathError, TypeError, ValueError, ArithmeticError) as error:  # what its functions let through
        raise shape(f"{key}: its expression fails on the reply ({type(error).__name__})") from error


def hits_of(expression: str | Mapping[Column, str], reply: object) -> tuple[Hit, ...]:
    """The passages of a reply, in its order.

    Args:
        expression: One expression for a list of texts or of objects with id, text or score; or one for each of these
            fields, which yield lists of equal length.
        reply: Decoded JSON.

    Raises:
        ExchangeError: They cannot be found (`shape`). A list that is there and empty is a reply, not an error.
    """
    if isinstance(expression, str):
        rows = _list(search(expression, reply, "contexts"), "contexts")
    else:
        columns = {name: _list(search(each, reply, name), f"contexts.{name}") for name, each in expression.items()}
        if len({len(column) for column in columns.values()}) > 1:
            found = ", ".join(f"{len(column)} of {name}" for name, column in columns.items())
            raise shape(f"contexts: fields differ in length: {found}")
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return tuple(_hit(row, f"contexts[{rank}]") for rank, row in enumerate(rows))


def text_of(expression: str, reply: object, key: str) -> str:
    """The text that an expression finds in a reply.

    Raises:
        ExchangeError: It finds none (`shape`).
    """
    found = search(expression, reply, key)
    if not isinstance(found, str):
        raise shape(f"{key}: no text was found in the reply")
    return found


def vector_of(expression: str, reply: object) -> list[float]:
    """The numbers that an expression finds in a reply.

    Raises:
        ExchangeError: It finds none (`shape`).
    """
    found = search(expression, reply, "vector")
    if not isinstance(found, list) or not found or not all(_is_number(each) for each in found):
        raise shape("vector: no list of numbers was found in the reply")
    return found


def _list(found: object, key: str) -> list[Any]:
    if not isinstance(found, list):
        raise shape(f"{key}: no list was found in the reply")
    if len(found) > MOST_HITS:
        raise shape(f"{key}: {len(found)} passages, more than {MOST_HITS}; ask for fewer")
    return found


def _hit(row: object, place: str) -> Hit:
    if isinstance(row, str):
        return Hit(text=row)
    if not isinstance(row, dict):
        raise shape(f"{place}: is neither a text nor an object")
    name, text, score = (row.get(field) for field in get_args(Column))
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    if not isinstance(name, str | None):
        raise shape(f"{place}.id: is neither a text nor an integer")
    if not isinstance(text, str | None):
        raise shape(f"{place}.text: is no text")
    if score is not None and not _is_number(score):
        raise shape(f"{place}.score: is no number")
    if not name and text is None:
        raise shape(f"{place}: has neither id nor text")
    return Hit(name or None, text, None if score is None else float(score))


def _is_number(value: object) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    except OverflowError:  # a whole number beyond floats, which `to_number` reads out of a text
        return False
