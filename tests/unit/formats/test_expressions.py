"""Conditions: the functions that short ones are compiled to say what JMESPath says."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import jmespath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logged import DATA

from ragwatch.errors import FormatError
from ragwatch.formats import FORMATS
from ragwatch.formats.expressions import compile_expression, extractor, is_true, predicate, search
from ragwatch.formats.shape import Record

_FIELDS = st.sampled_from(["a", "b", "a.b", "b.a.b"])
_LITERALS = st.sampled_from(["'x'", "''", "`null`", "`1`", "`true`", "`[]`"])
_TERMS = _FIELDS | st.builds("{} {} {}".format, _FIELDS, st.sampled_from(["==", "!="]), _LITERALS)
_CONDITIONS = st.recursive(
    _TERMS | st.builds("{} == {}".format, _LITERALS, _FIELDS),
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["&&", "||"]), inner) | st.builds("!({})".format, inner)
    ),
    max_leaves=4,
)
_VALUES = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 0.5, "", "x", [], {}, [1]]),
    lambda inner: st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


@given(_CONDITIONS, st.dictionaries(st.sampled_from("ab"), _VALUES))
def test_conditions_say_what_jmespath_says(condition: str, record: dict[str, Any]) -> None:
    """Whether compiled to functions or not, a condition is true exactly where its value in JMESPath counts as true."""
    value = jmespath.search(condition, record)
    assert is_true(value) == (value not in (None, "", [], {}) and value is not False)
    assert predicate("where", condition)(record) == is_true(value)


def test_a_failing_condition_names_its_key() -> None:
    """Functions refuse values of other types; the error quotes no text of the record."""
    with pytest.raises(FormatError) as caught:
        predicate("where", "starts_with(path, '/ask')")({"path": None, "secret": "ann@example.org"})
    assert (caught.value.field, "starts_with() takes string" in str(caught.value)) == ("where", True)
    assert "ann@" not in str(caught.value)


RECORDS = [
    json.loads(line) for path in sorted(DATA.glob("*.jsonl")) for line in path.read_text(encoding="utf-8").splitlines()
]
EXPRESSIONS = sorted({expression for shape in FORMATS.values() for expression in shape.MAPPING.values()})


@pytest.mark.parametrize("expression", [*EXPRESSIONS, "a[-1]", "[a, b]", "*.a", "a[?b == 'x'].c", "a[].[b, c]", "@.a"])
def test_compiled_functions_say_what_jmespath_says(expression: str) -> None:
    """Every expression of a format on every record: the fast function and the interpreter agree."""
    quick, slow = extractor("x", expression), partial(search, compile_expression("x", expression), "x")
    for record in (*RECORDS, {"a": [{"b": "x", "c": 1}, 3, None, [{"b": "x"}]], "b": None}, {"a": "text"}):
        assert _outcome(quick, record) == _outcome(slow, record)


def _outcome(read: Callable[[Record], object], record: Record) -> object:
    try:
        return read(record)
    except FormatError as error:
        return error.reason
