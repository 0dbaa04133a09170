"""User-defined format: JMESPath expressions, one for each field of a sample.

```yaml
format: custom
mapping:
  question: request.q || request.query
  contexts: "from_json(retrieval).hits[].{id: id, text: body, score: score}"
  answer: reply.text
  history: request.messages
  metadata.tenant: tenant
```
`contexts` yields texts or objects, `history` the turns of the conversation (with or without the question); `||` gives a
fallback; `from_json(x)` decodes JSON that was logged as text.
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
from ragwatch.formats import canonical, fields, relevance
from ragwatch.formats.shape import Record

NAME = "custom"
REQUIRED = ("contexts", "answer")
KEYS = (
    *("question", *REQUIRED, "id", "at", "route", "trace_id", "reference", "metadata", "history"),
    *relevance.KEYS,
)
_METADATA = "metadata."
# Exceptions that jmespath does not wrap, for values of unexpected types: `a < b` of a text and a number,
# `contains(a, b)` and `merge(a, b)` with null, `ceil` of infinity, a slice with step 0, equality of deep lists.
_FAILURES = (ArithmeticError, LookupError, RecursionError, TypeError, ValueError)


class _Functions(functions.Functions):
    """JMESPath's built-in functions, and `from_json`."""

    @functions.signature({"types": []})
    def _func_from_json(self, value: object) -> object:
        return fields.embedded(value)

    @functions.signature({"types": []})
    def _func_to_number(self, value: object) -> object:
        """Convert to a number; None for `nan`, `inf` and integers beyond floats, which the built-in version returns."""
        converted = super()._func_to_number(value)  # type: ignore[misc]  # jmespath has no types
        return converted if converted is None or abs(converted) <= fields.MAX_NUMBER else None


_OPTIONS = jmespath.Options(custom_functions=_Functions())
_FUNCTION_TABLE: Mapping[str, Any] = _Functions.FUNCTION_TABLE


class MappingReader:
    """Reads records with JMESPath expressions.

    Args:
        mapping: Expression by field: `contexts` and `answer`, and optionally others of KEYS or `metadata.NAME`.

    Raises:
        ConfigError: An expression is invalid; the message names its key and the position.
    """

    def __init__(self, mapping: Mapping[str, str]) -> None:
        for key in REQUIRED:
            if key not in mapping:
                raise ConfigError(f"mapping.{key}: is missing, write the JMESPath expression that finds it")
        for key in mapping:
            if key not in KEYS and not (key.startswith(_METADATA) and key != _METADATA):
                raise ConfigError(f"mapping.{key}: unknown, use one of {', '.join(KEYS)} or metadata.NAME")
        compiled = {key: _compiled(key, expression) for key, expression in mapping.items()}
        self._fields = {key: parsed for key, parsed in compiled.items() if not key.startswith(_METADATA)}
        self._extras = {
            key.removeprefix(_METADATA): parsed for key, parsed in compiled.items() if key.startswith(_METADATA)
        }

    def read(self, record: Record, fallback_id: str) -> Sample:
        """Return the sample that the expressions extract. A question that is not extracted is unknown."""
        return canonical.read(self.extract(record), fallback_id)

    def extract(self, record: Record) -> Record:
        """Return what the expressions extract, as a record in the canonical format."""
        extracted: dict[str, Any] = {"question": None}
        for key, expression in self._fields.items():
            value = _search(expression, key, record)
            if value is not None:
                extracted[key] = value
        values = {name: _search(parsed, f"metadata.{name}", record) for name, parsed in self._extras.items()}
        extras = {name: value for name, value in values.items() if value is not None}
        if extras:
            metadata = extracted.get("metadata", {})
            extracted["metadata"] = {**metadata, **extras} if isinstance(metadata, dict) else metadata
        return extracted


def _search(expression: ParsedResult, key: str, record: Record) -> Any:  # noqa: ANN401  a JSON value is any value
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


def _compiled(key: str, expression: str) -> ParsedResult:
    try:
        compiled = jmespath.compile(expression)
    except (ParseError, LexerError) as error:
        position = getattr(error, "lex_position", getattr(error, "lexer_position", 0))
        raise ConfigError(f"mapping.{key}: {_syntax_error(error)} at position {position} of {expression!r}") from error
    except JMESPathError as error:
        raise ConfigError(f"mapping.{key}: {error} at position 0 of {expression!r}") from error
    for name, arguments in _calls(compiled.parsed):
        _check_call(key, expression, name, arguments)
    return compiled


def _syntax_error(error: ParseError | LexerError) -> str:
    token = getattr(error, "token_value", "")
    return f"unexpected {token!r}" if token else "the expression ends too early or cannot be read"


def _calls(node: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
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
        raise ConfigError(f"mapping.{key}: unknown function {name!r} at position {position} of {expression!r}")
    signature = _FUNCTION_TABLE[name]["signature"]
    variadic = bool(signature) and bool(signature[-1].get("variadic"))
    if arguments < len(signature) or (arguments > len(signature) and not variadic):
        raise ConfigError(
            f"mapping.{key}: {name}() takes {len(signature)} arguments, not {arguments},"
            f" at position {position} of {expression!r}"
        )
