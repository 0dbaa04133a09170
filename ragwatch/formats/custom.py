"""A shape of one's own: JMESPath expressions, one for each field of a sample.

```yaml
format: custom
mapping:
  question: request.q || request.query
  contexts: "from_json(retrieval).hits[].{id: id, text: body, score: score}"
  answer: reply.text
  metadata.tenant: tenant
```
`contexts` yields texts or objects; `||` falls back; `from_json(x)` opens JSON that was logged as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jmespath
from jmespath import functions
from jmespath.exceptions import JMESPathError, JMESPathTypeError, LexerError, ParseError
from jmespath.parser import ParsedResult

from ragwatch.core.sample import RejectReason, Sample
from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats import canonical, fields
from ragwatch.formats.shape import Record

NAME = "custom"
REQUIRED = ("contexts", "answer")
KEYS = ("question", *REQUIRED, "id", "at", "route", "trace_id", "reference", "metadata")
_METADATA = "metadata."
# What Python says of values that an expression was not made for: jmespath lets it pass. `a < b` of a text and a number,
# `contains(a, b)` and `merge(a, b)` with null, `ceil` of infinity, a slice with step 0, equality of deep lists.
_FAILURES = (ArithmeticError, LookupError, RecursionError, TypeError, ValueError)


class _Functions(functions.Functions):
    """JMESPath's own functions and ours."""

    @functions.signature({"types": []})
    def _func_from_json(self, value: object) -> object:
        return fields.embedded(value)

    @functions.signature({"types": []})
    def _func_to_number(self, value: object) -> object:
        """JMESPath's own also makes `nan`, `inf` and integers that no JSON holds; those are unknown here."""
        found = super()._func_to_number(value)  # type: ignore[misc]  # jmespath has no types
        return found if found is None or abs(found) <= fields.LARGEST else None


_OPTIONS = jmespath.Options(custom_functions=_Functions())
_KNOWN: Mapping[str, Any] = _Functions.FUNCTION_TABLE


class MappingReader:
    """A reader made of JMESPath expressions.

    Args:
        mapping: Expression by field: `contexts` and `answer`, and any other of KEYS or `metadata.NAME`.

    Raises:
        ConfigError: An expression is wrong; the message names its key and the position.
    """

    def __init__(self, mapping: Mapping[str, str]) -> None:
        for key in REQUIRED:
            if key not in mapping:
                raise ConfigError(f"mapping.{key}: is missing, write the JMESPath expression that finds it")
        for key in mapping:
            if key not in KEYS and not (key.startswith(_METADATA) and key != _METADATA):
                raise ConfigError(f"mapping.{key}: unknown, use one of {', '.join(KEYS)} or metadata.NAME")
        compiled = {key: _compiled(key, expression) for key, expression in mapping.items()}
        self._fields = {key: found for key, found in compiled.items() if not key.startswith(_METADATA)}
        self._extras = {
            key.removeprefix(_METADATA): found for key, found in compiled.items() if key.startswith(_METADATA)
        }

    def read(self, record: Record, fallback_id: str) -> Sample:
        """The sample that the expressions find in the record. A question they do not find is unknown."""
        found: dict[str, Any] = {"question": None}
        for key, expression in self._fields.items():
            value = _search(expression, key, record)
            if value is not None:
                found[key] = value
        extras = {name: _search(found_by, f"metadata.{name}", record) for name, found_by in self._extras.items()}
        known = {name: value for name, value in extras.items() if value is not None}
        if known:
            given = found.get("metadata", {})
            found["metadata"] = {**given, **known} if isinstance(given, dict) else given
        return canonical.read(found, fallback_id)


def _search(expression: ParsedResult, key: str, record: Record) -> Any:  # noqa: ANN401  a JSON value is any value
    try:
        return expression.search(record, options=_OPTIONS)
    except (JMESPathError, *_FAILURES) as error:
        raise FormatError(RejectReason.WRONG_TYPE, key, f"its expression fails here: {_failure(error)}") from error


def _failure(error: Exception) -> str:
    """What went wrong, by types alone: errors are logged, and jmespath's own words quote the text of the sample."""
    if isinstance(error, JMESPathTypeError):
        wanted = " or ".join(error.expected_types)
        return f"{error.function_name}() takes {wanted}, not {error.actual_type}"
    return str(error) if isinstance(error, TypeError) else type(error).__name__


def _compiled(key: str, expression: str) -> ParsedResult:
    try:
        compiled = jmespath.compile(expression)
    except (ParseError, LexerError) as error:
        position = getattr(error, "lex_position", getattr(error, "lexer_position", 0))
        raise ConfigError(f"mapping.{key}: {_what(error)} at position {position} of {expression!r}") from error
    except JMESPathError as error:
        raise ConfigError(f"mapping.{key}: {error} at position 0 of {expression!r}") from error
    for name, arguments in _calls(compiled.parsed):
        _check_call(key, expression, name, arguments)
    return compiled


def _what(error: ParseError | LexerError) -> str:
    token = getattr(error, "token_value", "")
    return f"unexpected {token!r}" if token else "the expression ends too early or cannot be read"


def _calls(node: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Every function call in the expression, with the number of its arguments."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        children = [child for child in found.get("children", ()) if isinstance(child, dict)]
        if found.get("type") == "function_expression":
            yield found["value"], len(children)
        waiting.extend(children)


def _check_call(key: str, expression: str, name: str, arguments: int) -> None:
    """JMESPath notices a wrong call only when it runs; a typing error must not wait for the traffic."""
    position = expression.find(f"{name}(")
    if name not in _KNOWN:
        raise ConfigError(f"mapping.{key}: unknown function {name!r} at position {position} of {expression!r}")
    wanted = _KNOWN[name]["signature"]
    variadic = bool(wanted) and bool(wanted[-1].get("variadic"))
    if arguments < len(wanted) or (arguments > len(wanted) and not variadic):
        raise ConfigError(
            f"mapping.{key}: {name}() takes {len(wanted)} arguments, not {arguments},"
            f" at position {position} of {expression!r}"
        )
