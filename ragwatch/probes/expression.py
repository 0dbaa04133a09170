"""Extracts passages, texts and vectors from a response with JMESPath expressions."""

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
MAX_HITS = 1000


def valid_expression(expression: str) -> str:
    """Return the expression if it is valid.

    Raises:
        ValueError: It is not valid JMESPath, or calls an unknown function, which JMESPath itself would report only when
            it runs.
    """
    try:
        stack: list[Any] = [jmespath.compile(expression).parsed]
    except JMESPathError as error:
        raise ValueError(f"is not JMESPath: {' '.join(str(error).split())[:200]}") from error
    while stack:
        node = stack.pop()
        if node["type"] == "function_expression" and node["value"] not in Functions.FUNCTION_TABLE:
            raise ValueError(f"JMESPath has no function {node['value']!r}; use one of its own")
        stack.extend(child for child in node["children"] if isinstance(child, dict))
    return expression


def search(expression: str, reply: object, key: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return what the expression finds; None if it finds nothing.

    Raises:
        ExchangeError: The expression fails on this response (`shape`); the message names `key`.
    """
    try:
        return jmespath.compile(expression).search(reply)  # jmespath caches compiled expressions
    except (JMESPathError, TypeError, ValueError, ArithmeticError) as error:  # some are not wrapped by jmespath
        raise shape(f"{key}: its expression fails on the reply ({type(error).__name__})") from error


def hits_of(expression: str | Mapping[Column, str], reply: object) -> tuple[Hit, ...]:
    """Extract the passages of a response, in its order.

    Args:
        expression: One expression for a list of texts or of objects with id, text or score; or one for each of these
            fields, which yield lists of equal length.
        reply: Decoded JSON.

    Raises:
        ExchangeError: They are not found (`shape`). An empty list is a valid response.
    """
    if isinstance(expression, str):
        rows = _list(search(expression, reply, "contexts"), "contexts")
    else:
        columns = {name: _list(search(path, reply, name), f"contexts.{name}") for name, path in expression.items()}
        if len({len(column) for column in columns.values()}) > 1:
            lengths = ", ".join(f"{len(column)} of {name}" for name, column in columns.items())
            raise shape(f"contexts: fields differ in length: {lengths}")
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return tuple(_hit(row, f"contexts[{rank}]") for rank, row in enumerate(rows))


def text_of(expression: str, reply: object, key: str) -> str:
    """Extract a text from a response.

    Raises:
        ExchangeError: There is none (`shape`).
    """
    text = search(expression, reply, key)
    if not isinstance(text, str):
        raise shape(f"{key}: no text was found in the reply")
    return text


def vector_of(expression: str, reply: object) -> list[float]:
    """Extract a list of numbers from a response.

    Raises:
        ExchangeError: There is none (`shape`).
    """
    vector = search(expression, reply, "vector")
    if not isinstance(vector, list) or not vector or not all(_is_number(item) for item in vector):
        raise shape("vector: no list of numbers was found in the reply")
    return vector


def _list(items: object, key: str) -> list[Any]:
    if not isinstance(items, list):
        raise shape(f"{key}: no list was found in the reply")
    if len(items) > MAX_HITS:
        raise shape(f"{key}: {len(items)} passages, more than {MAX_HITS}; ask for fewer")
    return items


def _hit(row: object, path: str) -> Hit:
    if isinstance(row, str):
        return Hit(text=row)
    if not isinstance(row, dict):
        raise shape(f"{path}: is neither a text nor an object")
    name, text, score = (row.get(field) for field in get_args(Column))
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    if not isinstance(name, str | None):
        raise shape(f"{path}.id: is neither a text nor an integer")
    if not isinstance(text, str | None):
        raise shape(f"{path}.text: is not a text")
    if score is not None and not _is_number(score):
        raise shape(f"{path}.score: is not a number")
    if not name and text is None:
        raise shape(f"{path}: has neither id nor text")
    return Hit(name or None, text, None if score is None else float(score))


def _is_number(value: object) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    except OverflowError:  # an integer beyond floats, which `to_number` can return
        return False
