"""JMESPath expressions of the configuration: compiled when they are loaded, with errors that name the key."""

from collections.abc import Callable, Mapping
from functools import partial

import jmespath
from jmespath import functions
from jmespath.exceptions import JMESPathError, JMESPathTypeError, LexerError, ParseError
from jmespath.parser import ParsedResult

from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats import fields, messages, retrieved
from ragwatch.formats.compiled import Node, compile_all, compile_one, is_number
from ragwatch.formats.record import Record
from ragwatch.model.sample import RejectReason

Predicate = Callable[[Record], bool]
_Value = Callable[[object], object]

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
    **{function.__name__: function for function in (messages.answers, messages.question_text, *retrieved.FUNCTIONS)},
}
"""Functions of one value that JMESPath does not have."""
_FUNCTION_TABLE: Mapping[str, Node] = _Functions.FUNCTION_TABLE | {
    name: {"function": lambda _, value, function=function: function(value), "signature": ({"types": []},)}
    for name, function in _OWN.items()
}
_Functions.FUNCTION_TABLE = _FUNCTION_TABLE
_OPTIONS = jmespath.Options(custom_functions=_Functions())


def search(expression: ParsedResult, key: str, record: Record) -> object:
    """Return what an expression extracts from a record; None if nothing, wrong_type if it fails on these values."""
    try:
        return expression.search(record, options=_OPTIONS)
    except (JMESPathError, *_FAILURES) as error:
        raise _failure(error, key) from error


def _failure(error: Exception, key: str) -> FormatError:
    """Describe an error by types only: errors are logged, and messages of jmespath quote the text of the sample."""
    what = str(error) if isinstance(error, TypeError) else type(error).__name__
    if isinstance(error, JMESPathTypeError):
        what = f"{error.function_name}() takes {' or '.join(error.expected_types)}, not {error.actual_type}"
    return FormatError(RejectReason.WRONG_TYPE, key, f"its expression fails here: {what}")


def compile_expression(key: str, expression: str) -> ParsedResult:
    """Compile an expression of JMESPath; `key` is that of the configuration, for errors."""
    try:
        compiled = jmespath.compile(expression)
    except (ParseError, LexerError) as error:
        position = getattr(error, "lex_position", getattr(error, "lexer_position", 0))
        token = getattr(error, "token_value", "")
        wrong = f"unexpected {token!r}" if token else "the expression ends too early or cannot be read"
        raise ConfigError(f"{key}: {wrong} at position {position} of {expression!r}") from error
    except JMESPathError as error:
        raise ConfigError(f"{key}: {error} at position 0 of {expression!r}") from error
    nodes: list[Node] = [compiled.parsed]
    while nodes:
        node = nodes.pop()
        children = [child for child in node.get("children", ()) if isinstance(child, dict)]
        if node.get("type") == "function_expression":
            _check_call(key, expression, node["value"], len(children))
        nodes += children
    return compiled


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


def extractor(key: str, expression: str) -> Callable[[Record], object]:
    """Compile an expression to a function that extracts its value as `search` does."""
    compiled = compile_expression(key, expression)
    quick = compile_one(compiled.parsed, partial(search, compiled, key), _OWN)

    def extract(record: Record) -> object:
        try:
            return quick(record)
        except _FAILURES as error:
            raise _failure(error, key) from error

    return extract


class Extractors:
    """The expressions of a mapping: functions that extract their values, each of them and all at once."""

    def __init__(self, mapping: Mapping[str, str]) -> None:
        parsed = {key: compile_expression(f"mapping.{key}", expression) for key, expression in mapping.items()}
        self.apart = {key: partial(search, one, key) for key, one in parsed.items()}
        self._together = compile_all({key: (one.parsed, self.apart[key]) for key, one in parsed.items()}, _OWN)

    def values(self, record: Record) -> dict[str, object]:
        """Return the values that are not null, by key."""
        if self._together is None:
            return {key: value for key, read in self.apart.items() if (value := read(record)) is not None}
        at = [""]
        try:
            values: dict[str, object] = self._together(record, at)
        except _FAILURES as error:
            raise _failure(error, at[0]) from error
        return values


def predicate(key: str, expression: str) -> Predicate:
    """Compile a condition on records. Its value counts as true as in JMESPath: null, false, "", [] and {} are false.

    Conditions on fields (`event == 'answer' && !error`) are compiled to functions, which take a tenth of the time:
    they run for every line of a log.
    """
    compiled = compile_expression(key, expression)
    quick = compile_one(compiled.parsed, partial(search, compiled, key), _OWN)
    return lambda record: bool(value := quick(record)) or is_number(value)
