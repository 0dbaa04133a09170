"""JMESPath expressions of the configuration: compiled when they are loaded, with errors that name the key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import jmespath
from jmespath import functions
from jmespath.exceptions import JMESPathError, JMESPathTypeError, LexerError, ParseError
from jmespath.parser import ParsedResult

from ragwatch.core.sample import RejectReason
from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats import fields, messages, retrieved
from ragwatch.formats.shape import Record

Predicate = Callable[[Record], bool]
_Value = Callable[[object], object]
_Node = Mapping[str, Any]
"""A part of an expression as jmespath has parsed it: `type`, `value` and `children`."""

# Exceptions that jmespath does not wrap, for values of unexpected types: `a < b` of a text and a number,
# `contains(a, b)` and `merge(a, b)` with null, `ceil` of infinity, a slice with step 0, equality of deep lists.
_FAILURES = (ArithmeticError, LookupError, RecursionError, TypeError, ValueError)


class _Functions(functions.Functions):
    """JMESPath's built-in functions, `from_json`, `answers`, and those of `retrieved`."""

    @functions.signature({"types": []})
    def _func_to_number(self, value: object) -> object:
        """Convert to a number; None for `nan`, `inf` and integers beyond floats, which the built-in version returns."""
        converted = super()._func_to_number(value)  # type: ignore[misc]  # jmespath has no types
        return converted if converted is None or abs(converted) <= fields.MAX_NUMBER else None


_OWN: Mapping[str, _Value] = {
    "from_json": fields.embedded,
    "turns": retrieved.turns_of,
    **{
        function.__name__: function
        for function in (
            *(messages.answers, messages.question_text),
            *(
                retrieved.answer_of,
                retrieved.chain_input,
                retrieved.chain_question,
                retrieved.chain_result,
                retrieved.chat_contexts,
                retrieved.distinct,
            ),
            *(retrieved.documents, retrieved.file_search, retrieved.filled, retrieved.grounding),
            *(retrieved.message_text, retrieved.output_text, retrieved.question_of, retrieved.retrieved),
            *(retrieved.turns_before, retrieved.with_ids),
        )
    },
}
"""Functions of one value that JMESPath does not have."""


def _method(function: _Value) -> Callable[[object, object], object]:
    return lambda _, value: function(value)


_Functions.FUNCTION_TABLE |= {
    name: {"function": _method(function), "signature": ({"types": []},)} for name, function in _OWN.items()
}
_OPTIONS = jmespath.Options(custom_functions=_Functions())
_FUNCTION_TABLE: Mapping[str, _Node] = _Functions.FUNCTION_TABLE


def search(expression: ParsedResult, key: str, record: Record) -> object:
    """Return what an expression extracts from a record; None if it extracts nothing.

    Raises:
        FormatError: wrong_type, with the key: the expression fails on the values of this record.
    """
    try:
        return expression.search(record, options=_OPTIONS)
    except (JMESPathError, *_FAILURES) as error:
        raise FormatError(RejectReason.WRONG_TYPE, key, f"its expression fails here: {_failure(error)}") from error


def _failure(error: Exception) -> str:
    """Describe an error by types only: errors are logged, and messages of jmespath quote the text of the sample."""
    if isinstance(error, JMESPathTypeError):
        expected = " or ".join(error.expected_types)
        return f"{error.function_name}() takes {expected}, not {error.actual_type}"
    return str(error) if isinstance(error, TypeError) else type(error).__name__


def compile_expression(key: str, expression: str) -> ParsedResult:
    """Compile an expression of JMESPath; `key` is that of the configuration, for errors.

    Raises:
        ConfigError: It is invalid; the message names the key and the position.
    """
    try:
        compiled = jmespath.compile(expression)
    except (ParseError, LexerError) as error:
        position = getattr(error, "lex_position", getattr(error, "lexer_position", 0))
        raise ConfigError(f"{key}: {_syntax_error(error)} at position {position} of {expression!r}") from error
    except JMESPathError as error:
        raise ConfigError(f"{key}: {error} at position 0 of {expression!r}") from error
    for name, arguments in _calls(compiled.parsed):
        _check_call(key, expression, name, arguments)
    return compiled


def _syntax_error(error: ParseError | LexerError) -> str:
    token = getattr(error, "token_value", "")
    return f"unexpected {token!r}" if token else "the expression ends too early or cannot be read"


def _calls(node: _Node) -> Iterator[tuple[str, int]]:
    """Yield every function call in an expression, with the number of its arguments."""
    stack = [node]
    while stack:
        current = stack.pop()
        children = [child for child in current.get("children", ()) if isinstance(child, dict)]
        if current.get("type") == "function_expression":
            yield current["value"], len(children)
        stack.extend(children)


def _check_call(key: str, expression: str, name: str, arguments: int) -> None:
    """Raise an error for an invalid call, which JMESPath itself would report only when it runs."""
    position = expression.find(f"{name}(")
    if name not in _FUNCTION_TABLE:
        raise ConfigError(f"{key}: unknown function {name!r} at position {position} of {expression!r}")
    signature = _FUNCTION_TABLE[name]["signature"]
    variadic = bool(signature) and bool(signature[-1].get("variadic"))
    if arguments < len(signature) or (arguments > len(signature) and not variadic):
        raise ConfigError(
            f"{key}: {name}() takes {len(signature)} arguments, not {arguments},"
            f" at position {position} of {expression!r}"
        )


def extractor(key: str, expression: str, field: str | None = None) -> Callable[[Record], object]:
    """Compile an expression to a function that extracts its value, and raises FormatError as `search` does.

    Args:
        key: Key of the configuration, for errors of the expression.
        expression: JMESPath.
        field: Name of the field, for errors on records; the key if it is None.

    Raises:
        ConfigError: The expression is invalid.
    """
    compiled = compile_expression(key, expression)
    quick = _quick(compiled.parsed)
    name = field or key
    return partial(search, compiled, name) if quick is None else partial(_guarded, quick, name)


def _guarded(quick: _Value, key: str, record: Record) -> object:
    try:
        return quick(record)
    except _FAILURES as error:
        raise FormatError(RejectReason.WRONG_TYPE, key, f"its expression fails here: {_failure(error)}") from error


def predicate(key: str, expression: str) -> Predicate:
    """Compile a condition on records. Its value counts as true as in JMESPath: null, false, "", [] and {} are false.

    Conditions on fields (`event == 'answer' && !error`) are compiled to functions, which take a tenth of the time:
    they run for every line of a log. The function that is returned raises FormatError as `search` does.

    >>> is_answer = predicate("where", "event == 'answer' && status != `502`")
    >>> [is_answer(record) for record in ({"event": "answer"}, {"event": "answer", "status": 502}, {"event": "health"})]
    [True, False, False]

    Raises:
        ConfigError: The expression is invalid.
    """
    compiled = compile_expression(key, expression)
    quick = _quick(compiled.parsed)
    if quick is None:
        return lambda record: is_true(search(compiled, key, record))
    return lambda record: is_true(quick(record))


def is_true(value: object) -> bool:
    """Return whether JMESPath takes a value as true.

    >>> [is_true(value) for value in (0, "a", None, "", [], {}, False)]
    [True, True, False, False, False, False, False]
    """
    return bool(value) or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _quick(node: _Node) -> _Value | None:
    """The function of an expression, ten times as fast as jmespath; None where it has a part that is not in tables.

    Not in them are comparisons other than `==` and `!=` with a text or null, slices, and functions that check types.
    """
    kind, children = node["type"], node["children"]
    if kind == "comparator":
        return _comparison(node)
    if kind in _LEAVES:
        return partial(_LEAVES[kind], node.get("value"))
    if kind == "subexpression" and (names := _names_of(node)):
        return _path(names)
    combine: Callable[..., _Value] | None = _COMBINATIONS.get(kind)
    if kind == "function_expression":
        combine = _CALLS.get(node["value"])
        if node["value"] == "filled" and children[0]["type"] == "multi_select_list":
            combine, children = _first_filled, children[0]["children"]
    if kind == "multi_select_dict":
        combine = partial(_record_of, [child["value"] for child in children])
        children = [child["children"][0] for child in children]
    if combine is None:
        return None
    parts = [_quick(child) for child in children]
    known = [part for part in parts if part is not None]
    return combine(*known) if len(known) == len(parts) else None


def _field(name: str, value: object) -> object:
    return value.get(name) if isinstance(value, dict) else None


def _names_of(node: _Node) -> tuple[str, ...]:
    """The names in a path of fields; empty for any other expression."""
    if node["type"] == "field":
        return (node["value"],)
    parts = [_names_of(child) for child in node["children"]] if node["type"] == "subexpression" else []
    return tuple(name for part in parts for name in part) if parts and all(parts) else ()


def _path(names: Sequence[str]) -> _Value:
    def at(value: object) -> object:
        for name in names:
            if not isinstance(value, dict):
                return None
            value = value.get(name)
        return value

    return at


def _comparison(node: _Node) -> _Value | None:
    left, right = node["children"]
    if left["type"] == "literal":
        left, right = right, left
    operand, literal = _quick(left), right.get("value")
    comparable = right["type"] == "literal" and (literal is None or isinstance(literal, str))
    if operand is None or not comparable or node["value"] not in ("eq", "ne"):
        return None
    if node["value"] == "eq":
        return lambda value: operand(value) == literal
    return lambda value: operand(value) != literal


def _nested(*parts: _Value) -> _Value:
    def nested(value: object) -> object:
        for part in parts:
            value = part(value)
        return value

    return nested


def _both(left: _Value, right: _Value) -> _Value:
    return lambda value: right(value) if (first := left(value)) or is_true(first) else first


def _either(left: _Value, right: _Value) -> _Value:
    return lambda value: first if (first := left(value)) or is_true(first) else right(value)


def _negated(inner: _Value) -> _Value:
    return lambda value: not is_true(inner(value))


def _index(position: int, value: object) -> object:
    return value[position] if isinstance(value, list) and -len(value) <= position < len(value) else None


def _projection(base: _Value, part: _Value) -> _Value:
    def project(value: object) -> object:
        items = base(value)
        return [one for item in items if (one := part(item)) is not None] if isinstance(items, list) else None

    return project


def _filtered(base: _Value, part: _Value, condition: _Value) -> _Value:
    def project(value: object) -> object:
        items = base(value)
        if not isinstance(items, list):
            return None
        return [one for item in items if is_true(condition(item)) and (one := part(item)) is not None]

    return project


def _values(base: _Value, part: _Value) -> _Value:
    def project(value: object) -> object:
        items = base(value)
        return [one for item in items.values() if (one := part(item)) is not None] if isinstance(items, dict) else None

    return project


def _flattened(base: _Value) -> _Value:
    def flatten(value: object) -> object:
        items = base(value)
        if not isinstance(items, list):
            return None
        return [one for item in items for one in (item if isinstance(item, list) else (item,))]

    return flatten


def _record_of(names: Sequence[str], *parts: _Value) -> _Value:
    named = tuple(zip(names, parts, strict=True))
    return lambda value: None if value is None else {name: part(value) for name, part in named}


def _list_of(*parts: _Value) -> _Value:
    return lambda value: None if value is None else [part(value) for part in parts]


def _first_known(*parts: _Value) -> _Value:
    return lambda value: next((one for part in parts if (one := part(value)) is not None), None)


def _first_filled(*parts: _Value) -> _Value:
    """`retrieved.filled` of a list, of which only as many items are worked out as are needed."""

    def filled(value: object) -> object:
        empty = None
        for part in parts if value is not None else ():
            one = part(value)
            if one is not None:
                if one != "":
                    return one
                empty = ""
        return empty

    return filled


def _call(function: _Value) -> Callable[[_Value], _Value]:
    return lambda argument: lambda value: function(argument(value))


_LEAVES: Mapping[str, Callable[[Any, object], object]] = {
    "field": _field,
    "index": _index,
    "literal": lambda literal, _: literal,
    "identity": lambda _, value: value,
    "current": lambda _, value: value,
}
_COMBINATIONS: Mapping[str, Callable[..., _Value]] = {
    "subexpression": _nested,
    "index_expression": _nested,
    "pipe": _nested,
    "and_expression": _both,
    "or_expression": _either,
    "not_expression": _negated,
    "projection": _projection,
    "filter_projection": _filtered,
    "value_projection": _values,
    "flatten": _flattened,
    "multi_select_list": _list_of,
}
_CALLS: Mapping[str, Callable[..., _Value]] = {
    "not_null": _first_known,
    **{name: _call(function) for name, function in _OWN.items()},
}
