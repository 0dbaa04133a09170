"""Conditions: the functions that short ones are compiled to say what JMESPath says."""

from __future__ import annotations

from typing import Any

import jmespath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.errors import FormatError
from ragwatch.formats.expressions import is_true, predicate

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
