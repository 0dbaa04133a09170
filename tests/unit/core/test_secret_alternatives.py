"""Redaction, alternative by alternative: each one of each rule finds its secret, whatever stands around it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]  # no other way to the parts of a pattern
from typing import Any

import pytest
from support.secret_examples import EXAMPLES, PATTERNS

from ragwatch.core.redaction.redactor import Redactor
from ragwatch.core.redaction.rules import RULES, RedactionRule

RULE_OF: dict[str, RedactionRule] = dict(zip(EXAMPLES, RULES, strict=True))
CASES = [(name, text, part) for name, examples in EXAMPLES.items() for text, part in examples]
AROUND = (
    ("", ""),
    ("before ", " behind."),
    ("", " behind"),
    ("before ", ""),
    ("before\n", "\nbehind"),
    ("<b>", "</b>"),
)
TOKEN = re.compile(r"\[[A-Z_]+:[0-9a-f]{6}\]")


@pytest.mark.costly
@pytest.mark.parametrize(("name", "text", "part"), CASES, ids=[f"{name}-{text[:24]}" for name, text, _ in CASES])
def test_is_taken_out(name: str, text: str, part: str) -> None:
    """Alone, in a text and at either end of it: one token of the rule's kind, and all else is as it was."""
    for before, behind in AROUND:
        clean, counts = Redactor().redact_counted(f"{before}{text}{behind}")
        assert TOKEN.sub("#", clean) == f"{before}{text.replace(part, '#')}{behind}"
        assert counts == Counter({RULE_OF[name].kind: 1})


def narrowings(tree: Any) -> Iterator[str]:
    """Leaves a parsed pattern one alternative of one choice, says which, and takes that back before the next.

    Choices are branches, sets that hold nothing but letters, and parts that may be left out. A choice inside an
    alternative is made while nothing but that alternative is left. What stands in a lookahead or lookbehind is no part
    of the secret.
    """
    for place, (operation, argument) in enumerate(tree.data):
        if operation in (_constants.ASSERT, _constants.ASSERT_NOT):
            continue
        alternatives = _alternatives(operation, argument)
        for alternative in alternatives or [_taken(operation, argument)]:
            tree.data[place] = alternative
            if alternatives:
                yield str(alternative)
            for part in _parts(alternative[1]):
                yield from narrowings(part)
        tree.data[place] = (operation, argument)


def _alternatives(operation: Any, argument: Any) -> list[Any]:
    if operation is _constants.BRANCH:
        return [(operation, (None, [alternative])) for alternative in argument[1]]
    if operation is _constants.IN and all(op is _constants.LITERAL and chr(sign).isalpha() for op, sign in argument):
        return [(operation, [letter]) for letter in argument]
    if operation is _constants.MAX_REPEAT and tuple(argument[:2]) == (0, 1):
        return [(operation, (count, count, argument[2])) for count in (0, 1)]
    return []


def _taken(operation: Any, argument: Any) -> Any:
    """The same, but a repetition that might not occur does: else nothing in it would be tried."""
    if operation is _constants.MAX_REPEAT and argument[0] == 0:
        return (operation, (1, *argument[1:]))
    return (operation, argument)


def _parts(argument: Any) -> Iterator[Any]:
    """Patterns inside an operation's argument, however deep they lie in its lists."""
    if isinstance(argument, _parser.SubPattern):
        yield argument
    elif isinstance(argument, list | tuple):
        for item in argument:
            yield from _parts(item)


def _every(tree: Any) -> Iterator[Any]:
    yield tree
    for _, argument in tree.data:
        for part in _parts(argument):
            yield from _every(part)


def _compiled(tree: Any) -> re.Pattern[Any]:
    for part in _every(tree):
        part.width = None  # kept from the alternative before, which may have been longer
    return _compiler.compile(tree)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_alternative_has_an_example(name: str) -> None:
    """With any one alternative left of a choice, the pattern still matches an example: none is untried."""
    missing = []
    for pattern in PATTERNS[name]:
        texts = [text for text, _ in EXAMPLES[name]]
        if isinstance(pattern.pattern, bytes):  # issuers of cards are told from all digits
            texts = [re.sub(r"\D", "", text).encode() for text in texts]
        tree = _parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
        for alternative in narrowings(tree):
            narrowed = _compiled(tree)
            if not any(map(narrowed.fullmatch if isinstance(pattern.pattern, bytes) else narrowed.search, texts)):
                missing.append(f"{pattern.pattern}: {alternative}")
    assert missing == []
