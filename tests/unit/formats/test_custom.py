"""A mapping of one's own, the reader that finds the shape itself, and expressions that say what JMESPath says."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import jmespath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logged import ANSWER, AT, DATA, FULL, QUESTION, records

from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats import FORMATS, build
from ragwatch.formats.custom import MappingReader
from ragwatch.formats.expressions import compile_expression, extractor, predicate, search
from ragwatch.formats.record import Record
from ragwatch.model.sample import Context, RejectReason

MAPPING = {
    "id": "rid",
    "at": "when",
    "question": "req.q || req.query",
    "contexts": "from_json(rag).hits[].{id: key, text: snippet, score: sim}",
    "answer": "reply.final",
    "metadata.tenant": "tenant",
}
SMALL = {"contexts": "c", "answer": "a"}
NESTED: list[Any] = []
"""A list in a list, and so on: deeper than any interpreter compares or writes."""
for _ in range(200_000):
    NESTED = [NESTED]


def test_reads_own_shape() -> None:
    """Fallbacks, JSON inside text, renamed parts of contexts and metadata by name."""
    one, two = (build("custom", MAPPING).read(record, "log:1") for record in records("custom"))
    assert (one.id, one.at, one.question, one.contexts, one.answer) == ("7", AT, QUESTION, FULL, ANSWER)
    assert (one.metadata, two.metadata) == ({"tenant": "north"}, {})
    assert (two.id, two.question) == ("8", QUESTION)


def test_metadata_as_a_whole_and_by_name() -> None:
    """Single names are added to an object of metadata; an unknown question stays unknown."""
    reader = MappingReader({**SMALL, "metadata": "m", "metadata.x": "x", "trace_id": "t"})
    sample = reader.read({"c": ["p"], "a": "a", "m": {"y": 1}, "x": 2, "t": "tt"}, "log:1")
    assert sample.metadata == {"y": 1, "x": 2, "trace_id": "tt"}
    assert (sample.id, sample.question, sample.contexts) == ("log:1", None, (Context("p"),))


@pytest.mark.parametrize(
    ("mapping", "record", "reason", "field"),
    [
        (SMALL, {"a": "a"}, "missing_field", "contexts"),
        (SMALL, {"c": []}, "missing_field", "answer"),
        (SMALL, {"c": [{"x": 1}], "a": "a"}, "missing_field", "contexts[0].text"),
        (SMALL, {"c": [], "a": 3}, "wrong_type", "answer"),
        ({**SMALL, "id": "join('-', n)"}, {"c": [], "a": "a", "n": 3}, "wrong_type", "id"),
        ({**SMALL, "metadata": "m", "metadata.x": "x"}, {"c": [], "a": "a", "m": 3, "x": 1}, "wrong_type", "metadata"),
    ],
)
def test_names_the_key(mapping: dict[str, str], record: dict[str, Any], reason: str, field: str) -> None:
    """What an expression does not find is named by the key of the mapping."""
    with pytest.raises(FormatError) as caught:
        MappingReader(mapping).read(record, "log:1")
    assert (caught.value.reason, caught.value.field) == (RejectReason(reason), field)


@pytest.mark.parametrize(
    ("expression", "value", "why"),
    [
        ("join(', ', x)", "ann@example.org", "join() takes array-string, not string"),
        ("sort_by(x, &a)", [{"a": "ann@example.org"}, {"a": 2}], "sort_by() takes"),
        ("x[?s > `0.5`]", [{"s": "ann@example.org"}], "'>' not supported between"),
        ("contains('ann@example.org', x)", None, "requires string as left operand"),
        ("merge(@, x)", None, "object is not iterable"),
        ("ceil(sum(x))", [1.5e308, 1.5e308], "OverflowError"),
        ("x[::0]", [1], "ValueError"),
        ("x == x[0]", NESTED, "RecursionError"),
        ("to_string(x)", NESTED, "RecursionError"),
    ],
)
def test_what_an_expression_cannot_work_out_refuses_the_record(expression: str, value: object, why: str) -> None:
    """Whatever Python says of values it was not written for: a record is refused, and its text is not told."""
    with pytest.raises(FormatError) as caught:
        MappingReader({**SMALL, "metadata.x": expression}).read({"c": [], "a": "a", "x": value}, "log:1")
    assert (caught.value.reason, caught.value.field) == (RejectReason.WRONG_TYPE, "metadata.x")
    assert why in str(caught.value)
    assert "ann@" not in str(caught.value)


@pytest.mark.parametrize("text", ["nan", "inf", "-1e999", "9" * 400])
def test_numbers_that_no_json_holds_are_unknown(text: str) -> None:
    """`to_number` makes no NaN, no infinity, and no integer that is larger than every float."""
    reader = MappingReader(
        {"contexts": "c[].{text: t, score: to_number(s)}", "answer": "a", "metadata.x": "to_number(s)"}
    )
    sample = reader.read({"c": [{"t": "p", "s": text}], "a": "a", "s": text}, "log:1")
    assert (sample.contexts, sample.metadata) == ((Context("p"),), {})


WRONG_MAPPINGS = [
    ({"answer": "a"}, "mapping.contexts: is missing"),
    ({"contexts": "c"}, "mapping.answer: is missing"),
    ({**SMALL, "anwser": "a"}, "mapping.anwser: unknown, use one of question, contexts"),
    ({**SMALL, "metadata.": "a"}, "mapping.metadata.: unknown"),
    ({**SMALL, "question": "req.[q"}, "mapping.question: the expression ends too early or cannot be read at position"),
    ({**SMALL, "question": "req..q"}, "mapping.question: unexpected '.' at position 4"),
    ({**SMALL, "question": "a ~ b"}, "mapping.question: unexpected '~' at position 2"),
    ({**SMALL, "question": ""}, "mapping.question: "),
    ({**SMALL, "question": "a || fromjson(b)"}, "mapping.question: unknown function 'fromjson' at position 5"),
    ({**SMALL, "question": "from_json(a, b)"}, "mapping.question: from_json() takes 1 arguments, not 2"),
    ({**SMALL, "question": "[].join(',')"}, "mapping.question: join() takes 2 arguments, not 1, at position 3"),
]


@pytest.mark.parametrize(
    ("name", "mapping", "message"),
    [
        *(("custom", mapping, message) for mapping, message in WRONG_MAPPINGS),
        ("xml", None, "format: unknown 'xml', use one of auto, canonical, ragas"),
        ("custom", None, "mapping: format custom needs one"),
        ("custom", {}, "mapping: format custom needs one"),
        ("auto", SMALL, "mapping: format auto takes none"),
    ],
)
def test_what_cannot_be_built_is_refused(name: str, mapping: dict[str, str] | None, message: str) -> None:
    """A wrong format says what could be; a wrong expression is told with its key and the position."""
    with pytest.raises(ConfigError) as caught:
        build(name, mapping)
    assert str(caught.value).startswith(message)


def test_auto_reads_a_record_alike_whatever_came_before_it() -> None:
    """One that fits two shapes is read as the first of them, also behind a record of the second."""
    both = {"question": "q", "answer": "a", "contexts": ["one", "two"], "context": "one and two"}
    reader = build("auto")
    before = reader.read(both, "x")
    reader.read({"input": "q", "answer": "a", "context": "one and two"}, "x")
    assert reader.read(both, "x") == before
    assert len(before.contexts) == 2


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        ({}, "its keys are nothing"),
        ({"msg": 1, "level": 2}, "its keys are msg, level"),
        ({f"key{n}": n for n in range(12)}, "key8, key9 and 2 more"),
        ({"x" * 300: 1}, f"its keys are {'x' * 40}"),
    ],
)
def test_auto_says_what_it_saw(record: dict[str, int], shown: str) -> None:
    """A record of no known shape is refused with its first keys, shortened."""
    with pytest.raises(FormatError) as caught:
        build("auto").read(record, "x")
    assert caught.value.reason == RejectReason.UNKNOWN_FORMAT
    assert str(caught.value).endswith(shown)


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
    is_true = value not in (None, "", [], {}) and value is not False
    assert predicate("where", condition)(record) == is_true


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
