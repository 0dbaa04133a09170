"""Extracts passages, texts and vectors from a response with JMESPath expressions; defines errors of exchanges."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Literal, get_args

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions
from jmespath.visitor import TreeInterpreter

from ragwatch.statistics.canary.definition import Hit

if TYPE_CHECKING:
    from jmespath.visitor import _Expression, _TreeNode
from ragwatch.errors import ExternalError
from ragwatch.statistics.canary.definition import Failure


class ExchangeError(ExternalError):
    """An exchange with an endpoint failed.

    Args:
        reason: Reason that is counted.
        message: Error message; contains neither secrets nor text of the response.
    """

    def __init__(self, reason: Failure, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def shape(message: str) -> ExchangeError:
    """Return the error for a JSON response of unexpected structure."""
    return ExchangeError(Failure.SHAPE, message)


Column = Literal["id", "text", "score"]
MAX_HITS = 1000

_ROW_FUNCTIONS = frozenset({"map", "not_null", "reverse", "sort", "sort_by", "to_array"})
"""Functions of JMESPath that return the rows that they are given; all others make one value of them."""


def valid_expression(expression: str) -> str:
    """Return the expression if it is valid.

    Raises:
        ValueError: It is not valid JMESPath, or calls an unknown function, which JMESPath itself would report only when
            it runs.
    """
    try:
        stack: list[object] = [jmespath.compile(expression).parsed]
    except JMESPathError as error:
        raise ValueError(f"is not JMESPath: {' '.join(str(error).split())[:200]}") from error
    while stack:
        node = stack.pop()
        if not isinstance(node, dict):  # a position of a slice
            continue
        if node["type"] == "function_expression" and node["value"] not in Functions.FUNCTION_TABLE:
            raise ValueError(f"JMESPath has no function {node['value']!r}; use one of its own")
        stack.extend(node["children"])
    return expression


class _Rows(TreeInterpreter):
    """Evaluates an expression that finds rows, and keeps the null ones.

    JMESPath drops nulls from a projection such as `hits[].id`. Where they are rows, those after them would move up:
    ranks would be too high, and an id would stand beside the text of another row. Inside a row, in a condition, and
    where one element is picked, nulls are dropped as everywhere in JMESPath: `join(' ', parts[].text)`,
    `output[].results | [0]`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._usual = TreeInterpreter()

    def visit_projection(self, node: _TreeNode, value: object) -> list[object] | None:
        """Evaluate `rows[*].key`."""
        return self._projected(node, self.visit(node["children"][0], value))

    def visit_filter_projection(self, node: _TreeNode, value: object) -> list[object] | None:
        """Evaluate `rows[?condition].key`."""
        rows, condition = self.visit(node["children"][0], value), node["children"][2]
        if isinstance(rows, list):
            rows = [row for row in rows if _is_true(self._usual.visit(condition, row))]
        return self._projected(node, rows)

    def visit_value_projection(self, node: _TreeNode, value: object) -> list[object] | None:
        """Evaluate `rows.*.key`."""
        rows = self.visit(node["children"][0], value)
        return self._projected(node, list(rows.values()) if isinstance(rows, dict) else None)

    def visit_flatten(self, node: _TreeNode, value: object) -> object:
        """Evaluate `rows[]`; a null beside lists is a missing list: in `groups[].rows[]`, a group without rows."""
        (child,) = node["children"]
        items, usual = self.visit(child, value), self._usual.visit(child, value)
        if not isinstance(items, list):
            return None
        if not usual or any(isinstance(item, list) for item in usual):
            items = [item for item in items if item is not None]
        return [row for item in items for row in (item if isinstance(item, list) else [item])]

    def visit_pipe(self, node: _TreeNode, value: object) -> object:
        """Evaluate `rows | step`."""
        rows, step = node["children"]
        return self.visit(step, (self._usual if _picks(step) else self).visit(rows, value))

    def visit_index_expression(self, node: _TreeNode, value: object) -> object:
        """Evaluate `rows[0]` and `rows[:3]`."""
        rows, step = node["children"]
        return self.visit(step, (self._usual if step["type"] == "index" else self).visit(rows, value))

    def visit_or_expression(self, node: _TreeNode, value: object) -> object:
        """Evaluate `first || second`; rows that are all null give way to the second, as in JMESPath."""
        first, second = node["children"]
        return self.visit(first if _is_true(self._usual.visit(first, value)) else second, value)

    def visit_function_expression(self, node: _TreeNode, value: object) -> object:
        """Evaluate a function call."""
        if node["value"] in _ROW_FUNCTIONS:
            return super().visit_function_expression(node, value)
        return self._usual.visit(node, value)

    def visit_expref(self, node: _TreeNode, value: object) -> _Expression:
        """Evaluate `&key`, which a function applies to each row."""
        return self._usual.visit_expref(node, value)

    def visit_multi_select_dict(self, node: _TreeNode, value: object) -> object:
        """Evaluate `{id: key}`, which is a row."""
        return self._usual.visit(node, value)

    def _projected(self, node: _TreeNode, rows: object) -> list[object] | None:
        return [self.visit(node["children"][1], row) for row in rows] if isinstance(rows, list) else None


def _is_true(value: object) -> bool:
    """Return whether JMESPath takes a value as true: zero is, and what is empty is not."""
    return bool(value) or (isinstance(value, int | float) and value is not False)


def _picks(step: _TreeNode) -> bool:
    """Return whether a step begins by picking one element of a list, or makes one value of it."""
    while step["type"] != "function_expression" and step["children"] and isinstance(step["children"][0], dict):
        first = step["children"][0]
        if step["type"] == "index_expression" and first["type"] in ("identity", "current"):
            return step["children"][1]["type"] == "index"
        step = first
    return step["type"] == "function_expression" and step["value"] not in _ROW_FUNCTIONS


def search(expression: str, reply: object, key: str, *, rows: bool = False) -> object:
    """Return what the expression finds; None if it finds nothing. Null ones among `rows` are kept; see `_Rows`.

    Raises:
        ExchangeError: The expression fails on this response (`shape`); the message names `key`.
    """
    try:
        tree = jmespath.compile(expression).parsed  # jmespath caches compiled expressions
        return (_Rows() if rows else TreeInterpreter()).visit(tree, reply)
    except (JMESPathError, TypeError, ValueError, ArithmeticError) as error:  # some are not wrapped by jmespath
        raise shape(f"{key}: its expression fails on the reply ({type(error).__name__})") from error


def hits_of(expression: str | Mapping[Column, str], reply: object) -> tuple[Hit, ...]:
    """Extract the passages of a response, in its order.

    There is one expression for a list of texts or of objects with id, text or score; or one for each of these fields,
    which yield lists of equal length.

    Raises:
        ExchangeError: They are not found (`shape`). An empty list is a valid response.
    """
    if isinstance(expression, str):
        rows = _list(search(expression, reply, "contexts", rows=True), "contexts")
    else:
        columns = {
            name: _list(search(path, reply, name, rows=True), f"contexts.{name}") for name, path in expression.items()
        }
        if len({len(column) for column in columns.values()}) > 1:
            lengths = ", ".join(f"{len(column)} of {name}" for name, column in columns.items())
            raise shape(f"contexts: fields differ in length: {lengths}")
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return tuple(_hit(row, f"contexts[{rank}]") for rank, row in enumerate(rows))


def text_of(expression: str, reply: object, key: str) -> str:
    """Extract a text from a response. Raises ExchangeError: there is none (`shape`)."""
    text = search(expression, reply, key)
    if not isinstance(text, str):
        raise shape(f"{key}: no text was found in the reply")
    return text


def vector_of(expression: str, reply: object) -> list[float]:
    """Extract a list of numbers from a response. Raises ExchangeError: there is none (`shape`)."""
    vector = search(expression, reply, "vector")
    if not isinstance(vector, list) or not vector or not all(_is_number(item) for item in vector):
        raise shape("vector: no list of numbers was found in the reply")
    return vector


def _list(items: object, key: str) -> list[object]:
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
